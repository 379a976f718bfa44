"""Throwing entries away: scopes, and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from kv_action_router.caching.domains import Domains, near
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.readable import readable_entry
from kv_action_router.caching.statistics import LayerCounters, Statistics
from kv_action_router.errors import DomainError, EntryNotFoundError, InputError

LAYERS = ("task", "behavior", "execution")
REASON_LIMIT = 1000


class Scope(IntEnum):
    """What is thrown away (``InvalidateCache.SCOPE_*``)."""

    ENTRY = 1
    TASK = 2
    LAYER = 3
    DOMAIN = 4
    ALL = 5


class Cause(IntEnum):
    """Who threw it away; names the counter."""

    REQUEST = 1
    CONDITION = 2
    FAILURE = 3


@dataclass(frozen=True, slots=True)
class Invalidation:
    """A request to throw entries away (``InvalidateCache``); ``domain`` empty = the robot's own.

    For the execution layer ``entry_id`` is the version to go back to, 0 = the one at activation.
    """

    scope: int
    reason: str
    entry_id: int = 0
    intent_id: str = ""
    layer: str = ""
    domain: str = ""
    cause: Cause = Cause.REQUEST


class Invalidator:
    """Carries invalidations out. Belongs to the writing thread.

    The execution layer goes by its own scope only: "all" must not take a robot's derated limits.
    """

    def __init__(
        self,
        entries: EntryTable,
        domains: Domains,
        statistics: Statistics,
        go_back: Callable[[str, str, int], int],
    ) -> None:
        """Work on these; ``go_back(domain, reason, version)`` returns the number of drives."""
        self._entries = entries
        self._domains = domains
        self._statistics = statistics
        self._go_back = go_back

    def apply(self, request: Invalidation) -> list[int] | int:
        """Throw away; return the entries (or, for the execution layer, the number of drives).

        Raises:
            InputError, DomainError, EntryNotFoundError: it was refused, nothing was changed.
        """
        reason = request.reason.strip()
        if not 0 < len(reason) <= REASON_LIMIT:
            raise InputError("reason", f"1 to {REASON_LIMIT} characters", request.reason[:80])
        if request.scope not in set(Scope):
            known = ", ".join(f"{scope.value} ({scope.name})" for scope in Scope)
            raise InputError("scope", f"one of {known}", request.scope)
        domain = self._domains.require(request.domain) if request.domain else self._domains.own
        match Scope(request.scope):
            case Scope.ENTRY:
                return self._remove(request, [self._entry(request, domain)])
            case Scope.TASK:
                return self._remove(request, self._task(request, domain))
            case Scope.LAYER:
                return self._layer(request, domain, reason)
            case Scope.DOMAIN:
                return self._remove(request, self._of_domain(domain))
            case Scope.ALL:
                return self._remove(request, list(self._entries.tasks.slots))

    def _of_domain(self, domain: str) -> list[int]:
        return self._entries.ids(self._entries.partitions.find(domain))

    def _entry(self, request: Invalidation, domain: str) -> int:
        _, owner = readable_entry(self._entries, self._domains, domain, request.entry_id)
        if owner != domain:
            raise DomainError(
                f"entry_id must name an entry of domain {domain!r}, got {request.entry_id} of "
                f"{owner!r}, which is shared for reading only"
            )
        return request.entry_id

    def _task(self, request: Invalidation, domain: str) -> list[int]:
        if not request.intent_id:
            raise InputError("intent_id", "a name that is not empty", request.intent_id)
        table = self._entries.partitions
        found = table.find(domain, intent_id=request.intent_id)
        if not found:
            known = {table[number].intent_id for number in table.find(domain)}
            raise EntryNotFoundError(
                f"intent_id must be known in domain {domain!r}, got {request.intent_id[:80]!r} "
                f"({near(request.intent_id, known)})"
            )
        return self._entries.ids(found)

    def _layer(self, request: Invalidation, domain: str, reason: str) -> list[int] | int:
        if request.layer not in LAYERS:
            raise InputError("layer", f"one of {', '.join(LAYERS)}", request.layer[:80])
        if request.layer == "execution":
            count = self._go_back(domain, reason, request.entry_id)
            _count(self._statistics.of_execution(domain), request.cause, count)
            return count
        if request.layer == "task":
            return self._remove(request, self._of_domain(domain))
        held = [entry for entry in self._of_domain(domain) if self._entries.alive(entry)]
        self._entries.drop_behaviors(held)
        _count(self._statistics.of_behavior(domain), request.cause, len(held))
        return held

    def _remove(self, request: Invalidation, entry_ids: list[int]) -> list[int]:
        by_domain: dict[str, int] = {}
        for entry_id in entry_ids:
            number = self._entries.get(entry_id).partition
            name = self._entries.partitions[number].domain
            by_domain[name] = by_domain.get(name, 0) + 1
        self._entries.remove(entry_ids)
        for name, count in by_domain.items():
            _count(self._statistics.of_task(name), request.cause, count)
            _count(self._statistics.of_behavior(name), request.cause, count)
        return entry_ids


def _count(counters: LayerCounters, cause: Cause, count: int) -> None:
    name = "invalidations_" + cause.name.lower()
    setattr(counters, name, getattr(counters, name) + count)
