"""Isolation: no sequence of operations returns another domain's entry unless it is shared."""

from __future__ import annotations

import re
from itertools import product

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kv_action_router.caching.invalidation import Invalidation, Scope
from kv_action_router.contracts import UpdateOperation
from kv_action_router.errors import RouterError

NAMES = ("r1", "r2", "r3")
INTENTS = ("touch", "press")
names = st.sampled_from(NAMES)
intents = st.sampled_from(INTENTS)
scopes = st.sampled_from([Scope.TASK, Scope.LAYER, Scope.DOMAIN])
places = st.integers(0, 1)
entries = st.integers(1, 12)


class Isolation(RuleBasedStateMachine):
    """Three domains in one cache; a plain model knows whose entry is whose and who may read it."""

    build = None  # set by the test below

    @initialize()
    def start(self) -> None:
        self.manager = self.build.manager(capacity=6)
        self.owner: dict[int, str] = {}
        self.asked: dict[int, tuple[int, str]] = {}  # entry -> place and intent that find it
        self.empty: set[int] = set()  # entries whose behavior was thrown away
        self.grants: set[tuple[str, str]] = set()
        self.decision = 0
        self.decided = None

    def vector(self, place: int, robot: str):
        return self.build.vector(10 + place, 20 + place, 30 + place, robot=40 + NAMES.index(robot))

    @rule(domain=names, place=places, intent=intents)
    def insert_or_merge(self, domain: str, place: int, intent: str) -> None:
        update = self.build.update(
            vector=self.vector(place, domain), domain=domain, intent_id=intent
        )
        done = self.manager.apply(update)
        assert self.owner.setdefault(done.entry_id, domain) == domain
        self.asked[done.entry_id] = (place, intent)
        self.empty.discard(done.entry_id)

    @rule(owner=names, reader=names, isolated=st.booleans())
    def share_or_revoke(self, owner: str, reader: str, isolated: bool) -> None:
        try:
            self.manager.set_isolation(owner, reader, isolated=isolated)
        except RouterError:
            return
        change = {(owner, reader)}
        self.grants = self.grants - change if isolated else self.grants | change

    @rule(domain=names, entry=entries, success=st.booleans())
    def count(self, domain: str, entry: int, success: bool) -> None:
        operation = UpdateOperation.SUCCESS if success else UpdateOperation.FAILURE
        try:
            self.manager.apply(self.build.update(operation, entry=entry, version=1, domain=domain))
        except RouterError as error:
            self.names_what_may_be_read(domain, error)
            return
        assert self.may_read(domain, self.owner[entry])

    @rule(domain=names, entry=entries)
    def revise(self, domain: str, entry: int) -> None:
        try:
            self.manager.apply(
                self.build.update(UpdateOperation.REVISE, entry=entry, version=1, domain=domain)
            )
        except RouterError as error:
            self.names_what_may_be_read(domain, error)
            return
        assert self.owner[entry] == domain
        self.empty.discard(entry)

    @rule(domain=names, entry=entries)
    def invalidate_entry(self, domain: str, entry: int) -> None:
        try:
            self.manager.invalidate(Invalidation(Scope.ENTRY, "test", entry, domain=domain))
        except RouterError as error:
            self.names_what_may_be_read(domain, error)
            return
        assert self.owner[entry] == domain

    @rule(domain=names, intent=intents, scope=scopes)
    def invalidate_more(self, domain: str, intent: str, scope: Scope) -> None:
        others = {entry for entry in self.stored() if self.owner[entry] != domain}
        request = Invalidation(scope, "test", intent_id=intent, layer="behavior", domain=domain)
        mine = self.stored() - others
        try:
            self.manager.invalidate(request)
        except RouterError:
            return
        assert others <= self.stored()
        if scope == Scope.LAYER:
            self.empty |= mine

    @rule(domain=names, place=places, intent=intents, robot=names)
    def decide(self, domain: str, place: int, intent: str, robot: str) -> None:
        self.decision += 1
        key = self.build.key(self.vector(place, robot), domain=domain)
        match = self.build.decide(self.manager, self.decision, key, intent=intent)
        assert match.is_decision
        self.decided = key
        if match.hit:
            assert self.may_read(domain, self.owner[match.entry_id])
            assert match.decision.source_domain == self.owner[match.entry_id]
            assert self.asked[match.entry_id] == (place, intent)

    @invariant()
    def what_may_be_read_is_listed_and_nothing_else(self) -> None:
        if not hasattr(self, "manager"):
            return
        for reader in self.manager.domains.known:
            infos, remaining = self.manager.inspector.listed(reader)
            told = {info.entry_id for info in infos}
            assert remaining == 0
            assert told == {e for e in self.stored() if self.may_read(reader, self.owner[e])}
            for entry in {*self.owner, 99}:
                self.look(reader, entry, allowed=entry in told)

    @invariant()
    def what_may_no_longer_be_read_is_no_longer_followed(self) -> None:
        if not getattr(self, "decided", None):
            return
        match = self.manager.on_key(self.decided)
        assert not match.is_decision
        if match.hit:
            assert self.may_read(match.decision.domain, self.owner[match.entry_id])
            assert match.entry_id in self.stored() - self.empty

    @invariant()
    def what_may_be_read_is_found_and_nothing_else(self) -> None:
        if not hasattr(self, "manager"):
            return
        confident = self.manager.entries.tasks.confident
        slots = self.manager.entries.tasks.slots
        alive = {e for e, slot in slots.items() if confident[slot]} - self.empty
        for reader, place, intent, robot in product(
            self.manager.domains.known, range(2), INTENTS, NAMES
        ):
            answer = self.manager.query(self.vector(place, robot), domain=reader, intent_id=intent)
            # The robot slice is compared in the reader's own domain and waived in shared ones.
            readable = {
                entry
                for entry in alive
                if self.asked[entry] == (place, intent)
                and self.may_read(reader, self.owner[entry])
                and (self.owner[entry] != reader or robot == reader)
            }
            if answer.entry_id:
                assert self.may_read(reader, self.owner[answer.entry_id])
            if answer.hit:
                assert answer.entry_id in readable
            elif answer.guard != "reader_trust":
                assert not readable

    def look(self, reader: str, entry: int, *, allowed: bool) -> None:
        """Ask for an entry; a refusal names only what the reader may read."""
        try:
            found = self.manager.inspector.entry(entry, reader)
        except RouterError as error:
            assert not allowed
            self.names_what_may_be_read(reader, error)
            return
        assert allowed
        assert found.info.domain == self.owner[entry]

    def names_what_may_be_read(self, reader: str, error: RouterError) -> None:
        near = re.findall(r"\d+", str(error).partition("near ids")[2])
        assert all(self.may_read(reader, self.owner[int(number)]) for number in near)
        for name in set(NAMES) - {reader}:  # nor whose an entry is that it may not read
            assert repr(name) not in str(error) or self.may_read(reader, name)

    def stored(self) -> set[int]:
        return set(self.manager.entries.tasks.slots)

    def may_read(self, reader: str, owner: str) -> bool:
        return reader == owner or (owner, reader) in self.grants


def test_no_sequence_of_operations_crosses_a_domain(build) -> None:
    Isolation.build = build
    machine = Isolation.TestCase
    machine.settings = settings(max_examples=6, stateful_step_count=20, deadline=None)
    machine().runTest()


def test_the_robot_slice_is_compared_at_home_and_waived_when_shared(build) -> None:
    manager = build.manager()
    manager.apply(build.update(vector=build.vector(robot=5), domain="r2"))
    other_robot = build.vector(robot=6)
    assert not manager.query(other_robot, domain="r2", intent_id="touch").hit
    assert not manager.query(other_robot, domain="r1", intent_id="touch").hit
    manager.set_isolation("r2", "r1", isolated=False)
    answer = manager.query(other_robot, domain="r1", intent_id="touch")
    assert answer.hit
    assert answer.source_domain == "r2"


def test_one_domain_cannot_push_out_the_few_of_another(build) -> None:
    manager = build.manager(capacity=6)
    manager.apply(build.update(domain="r2"))
    for seed in range(40):
        manager.apply(build.update(vector=build.vector(100 + seed, 200 + seed, 300 + seed)))
    assert manager.query(build.vector(), domain="r2", intent_id="touch").hit
