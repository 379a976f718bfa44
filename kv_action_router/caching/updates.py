"""What execution teaches: entry updates, applied by compare and set."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from dataclasses import dataclass

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.domains import Domains, check_name
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.guards import ReaderTrustGuard
from kv_action_router.caching.key_index import prepare_key
from kv_action_router.caching.layers.behavior import check_behavior
from kv_action_router.caching.layers.execution import ExecutionLayer
from kv_action_router.caching.partitions import Partition
from kv_action_router.caching.readable import readable_entry
from kv_action_router.caching.statistics import Statistics
from kv_action_router.contracts import EntryUpdate, UpdateOperation
from kv_action_router.errors import (
    DomainError,
    EntryInvalidError,
    InputError,
)

NAME_LIMIT = 256


@dataclass(frozen=True, slots=True)
class Applied:
    """What an update did.

    Attributes:
        message: for people.
        entry_id, version: of the entry now; 0 = no entry was meant.
        evicted: entry that had to go for it; 0 = none.
        execution_changed: a new execution value is in force.
    """

    message: str
    entry_id: int = 0
    version: int = 0
    evicted: int = 0
    execution_changed: bool = False


def addressed(update: EntryUpdate, domains: Domains, encoder_id: str) -> EntryUpdate:
    """Return an insertion that somebody asks for, with what it leaves open filled in.

    Args:
        update: empty domain = the robot's own, empty encoder = the one given here.
        domains: that are known.
        encoder_id: of the newest key; empty = none has come yet.

    Raises:
        DomainError: the domain is not known; only what a robot sends makes a new one.
        InputError: nobody knows which encoder made the key.
    """
    decision = update.decision
    encoder = decision.encoder_id or encoder_id
    if not encoder:
        raise InputError("encoder_id", "a name while no key has come from an encoder", "")
    domain = domains.require(decision.domain) if decision.domain else domains.own
    return dataclasses.replace(
        update,
        decision=dataclasses.replace(
            decision, domain=domain, source_domain=domain, encoder_id=encoder
        ),
    )


class Updates:
    """Applies entry updates. Belongs to the writing thread.

    Invariant: an update that is refused has changed nothing but the count of refused ones.
    """

    def __init__(
        self,
        config: CachingConfig,
        entries: EntryTable,
        execution: ExecutionLayer,
        domains: Domains,
        trust: ReaderTrustGuard,
        statistics: Statistics,
    ) -> None:
        self._config = config
        self._entries = entries
        self._execution = execution
        self._domains = domains
        self._trust = trust
        self._statistics = statistics

    def apply(self, update: EntryUpdate, keep: int = 0, spared: Collection[int] = ()) -> Applied:
        """Apply an update.

        Args:
            update: to apply.
            keep: entry that must not be evicted.
            spared: entries that a guard refused for the decision that the update belongs to.

        Raises:
            KeyInvalidError, EntryInvalidError, EntryNotFoundError, StaleVersionError, DomainError:
                it was refused.
        """
        domain = update.decision.domain or self._config.own_domain
        check_name("decision.domain", domain)
        match update.operation:
            case UpdateOperation.INSERT:
                return self._insert(update, domain, keep, spared)
            case UpdateOperation.REVISE:
                return self._revise(update, domain)
            case UpdateOperation.SUCCESS | UpdateOperation.FAILURE:
                return self._count(update, domain)
            case UpdateOperation.EXECUTION:
                return self._set_execution(update, domain)
        known = ", ".join(f"{op.value} ({op.name})" for op in UpdateOperation)
        raise EntryInvalidError(f"operation must be one of {known}, got {update.operation!r}")

    def _insert(
        self, update: EntryUpdate, domain: str, keep: int, spared: Collection[int]
    ) -> Applied:
        if update.entry_id != 0:
            raise EntryInvalidError(f"entry_id must be 0 to insert, got {update.entry_id}")
        behavior = check_behavior(update.behavior, self._entries.behaviors.size)
        intent = update.decision.intent_id
        if not 0 < len(intent) <= NAME_LIMIT:
            raise EntryInvalidError(
                f"intent_id must have 1 to {NAME_LIMIT} characters, got {len(intent)}"
            )
        key = prepare_key(update.vector)
        self._domains.register(domain, "decision.domain")
        partition = Partition(domain, update.decision.encoder_id, intent, behavior.subtask, -1)
        done = self._entries.insert(partition, key, behavior, keep, spared)
        for counters in (self._statistics.of_task(domain), self._statistics.of_behavior(domain)):
            counters.insertions += 1
            counters.merges += done.merged
        verb = "merged into" if done.merged else "inserted as"
        message = f"{behavior.subtask} {verb} entry {done.entry_id} version {done.version}"
        if done.evicted is None:
            return Applied(message, done.entry_id, done.version)
        victim, home = done.evicted
        self._statistics.of_task(home.domain).evictions += 1
        self._statistics.of_behavior(home.domain).evictions += 1
        message += (
            f", entry {victim} of domain {home.domain!r} evicted (capacity {self._config.capacity})"
        )
        return Applied(message, done.entry_id, done.version, evicted=victim)

    def _revise(self, update: EntryUpdate, domain: str) -> Applied:
        _, owner = readable_entry(self._entries, self._domains, domain, update.entry_id)
        if owner != domain:
            raise DomainError(
                f"entry_id must name an entry of domain {domain!r}, got {update.entry_id} of "
                f"{owner!r}, which is shared for reading only"
            )
        entry = self._entries.get(update.entry_id, update.entry_version)
        behavior = check_behavior(update.behavior, self._entries.behaviors.size)
        subtask = self._entries.partitions[entry.partition].subtask
        if behavior.subtask != subtask:
            raise EntryInvalidError(
                f"behavior.subtask must be {subtask!r}, the one of entry {entry.entry_id}, "
                f"got {behavior.subtask!r}"
            )
        entry = self._entries.revise(entry.entry_id, entry.version, behavior)
        message = f"entry {entry.entry_id} revised to version {entry.version}"
        return Applied(message, entry.entry_id, entry.version)

    def _count(self, update: EntryUpdate, domain: str) -> Applied:
        _, owner = readable_entry(self._entries, self._domains, domain, update.entry_id)
        entry = self._entries.get(update.entry_id, update.entry_version)
        success = update.operation == UpdateOperation.SUCCESS
        if success:
            self._statistics.of_behavior(domain).hits += 1
        elif update.false_hit:
            self._statistics.of_task(domain).false_hits += 1
            self._statistics.of_behavior(domain).false_hits += 1
        verdict = f"entry {entry.entry_id} version {entry.version}: "
        verdict += "success" if success else f"failure ({update.reason})"
        if owner != domain:
            self._trust.count(domain, entry.entry_id, entry.version, success=success)
        elif success:
            self._entries.count_success(entry.entry_id, entry.version)
        elif self._entries.count_failure(entry.entry_id, entry.version, self._config.failure_limit):
            self._statistics.of_task(domain).invalidations_failure += 1
            verdict += f", not confident any more after {self._config.failure_limit} in a row"
        return Applied(verdict, entry.entry_id, entry.version)

    def _set_execution(self, update: EntryUpdate, domain: str) -> Applied:
        if update.execution is None:
            raise EntryInvalidError("execution must be given, got none")
        if update.execution.version == 0:  # a stage's wish: slots that it does not set are NaN
            value = self._execution.lay_over(domain, update.execution)
        else:
            value = self._execution.replace(domain, update.execution)
        self._domains.register(domain, "decision.domain")
        self._statistics.of_execution(domain).insertions += 1
        return Applied(
            f"execution value version {value.version} ({value.provenance or update.reason})",
            execution_changed=True,
        )
