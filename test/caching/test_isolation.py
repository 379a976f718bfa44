"""Isolation: no sequence of operations returns another domain's entry unless it is shared."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kv_action_router.caching.invalidation import Invalidation, Scope
from kv_action_router.contracts import UpdateOperation
from kv_action_router.errors import RouterError

NAMES = ("r1", "r2", "r3")
names = st.sampled_from(NAMES)
places = st.integers(0, 2)
entries = st.integers(1, 12)


class Isolation(RuleBasedStateMachine):
    """Three domains in one cache; a plain model knows whose entry is whose and who may read it."""

    build = None  # set by the test below

    @initialize()
    def start(self) -> None:
        self.manager = self.build.manager(capacity=6)
        self.owner: dict[int, str] = {}
        self.place: dict[int, int] = {}
        self.grants: set[tuple[str, str]] = set()
        self.decision = 0

    def vector(self, place: int, robot: str):
        return self.build.vector(10 + place, 20 + place, 30 + place, robot=40 + NAMES.index(robot))

    @rule(domain=names, place=places)
    def insert(self, domain: str, place: int) -> None:
        done = self.manager.apply(
            self.build.update(vector=self.vector(place, domain), domain=domain)
        )
        self.owner[done.entry_id] = domain
        self.place[done.entry_id] = place

    @rule(owner=names, reader=names, isolated=st.booleans())
    def share(self, owner: str, reader: str, isolated: bool) -> None:
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
        except RouterError:
            return
        assert self.may_read(domain, self.owner[entry])

    @rule(domain=names, entry=entries)
    def revise(self, domain: str, entry: int) -> None:
        try:
            self.manager.apply(
                self.build.update(UpdateOperation.REVISE, entry=entry, version=1, domain=domain)
            )
        except RouterError:
            return
        assert self.owner[entry] == domain

    @rule(domain=names, entry=entries)
    def invalidate(self, domain: str, entry: int) -> None:
        try:
            self.manager.invalidate(Invalidation(Scope.ENTRY, "test", entry, domain=domain))
        except RouterError:
            return
        assert self.owner[entry] == domain

    @rule(domain=names, place=places)
    def decide(self, domain: str, place: int) -> None:
        self.decision += 1
        key = self.build.key(self.vector(place, domain), domain=domain)
        match = self.build.decide(self.manager, self.decision, key)
        assert match.is_decision
        if match.hit:
            assert self.may_read(domain, self.owner[match.entry_id])
            assert match.decision.source_domain == self.owner[match.entry_id]

    @rule(domain=names, place=places)
    def refresh(self, domain: str, place: int) -> None:
        match = self.manager.on_key(self.build.key(self.vector(place, domain), domain=domain))
        if match.hit:
            assert self.may_read(match.decision.domain, self.owner[match.entry_id])

    @invariant()
    def what_may_be_read_is_found_and_nothing_else(self) -> None:
        if not hasattr(self, "manager"):
            return
        tasks = self.manager.entries.tasks
        alive = {
            entry: self.place[entry] for entry, slot in tasks.slots.items() if tasks.confident[slot]
        }
        for reader in NAMES:
            if reader not in self.manager.domains.known:
                continue
            for place in range(3):
                answer = self.manager.query(
                    self.vector(place, reader), domain=reader, intent_id="touch"
                )
                readable = {
                    entry
                    for entry, where in alive.items()
                    if where == place and self.may_read(reader, self.owner[entry])
                }
                if answer.entry_id:
                    assert self.may_read(reader, self.owner[answer.entry_id])
                if answer.hit:
                    assert answer.entry_id in readable
                elif answer.guard != "reader_trust":
                    assert not readable

    def may_read(self, reader: str, owner: str) -> bool:
        return reader == owner or (owner, reader) in self.grants


def test_no_sequence_of_operations_crosses_a_domain(build) -> None:
    Isolation.build = build
    machine = Isolation.TestCase
    machine.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
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
