"""The execution layer: durable copy of what the drives may do; the injector has the live one."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from kv_action_router.caching.layers.stage_slots import StageSlots
from kv_action_router.contracts import SLOT, ExecutionValue
from kv_action_router.errors import (
    EntryInvalidError,
    EntryNotFoundError,
    InputError,
    StaleVersionError,
)
from kv_action_router.robots.execution_values import check_slots

DRIVE_LIMIT = 64
KEPT_VERSIONS = 32  # of each domain, the newest
_DERATING = SLOT["derating"]


@dataclass(frozen=True, slots=True)
class ExecutionTicks:
    """Share of control ticks with a confident value, since the manager's activation."""

    ticks: int = 0
    confident: int = 0


class ExecutionLayer:
    """Execution value of each domain, swapped by reference: a reader sees one version, whole.

    Invariant: versions of a domain rise; a value made from an older version than the one in force
    is refused. One made from a version that was missed (the manager was restarted) is taken: the
    live values are the injector's, and what it sends is newer than what is kept here. Of each
    domain the value at activation and the newest versions are kept to go back to; what a stage
    asked for, while it lasted, is none of them.
    """

    def __init__(self) -> None:
        self._values: dict[str, ExecutionValue] = {}
        self._first: dict[str, ExecutionValue] = {}
        self._kept: dict[str, deque[ExecutionValue]] = {}
        self._last_version: dict[str, int] = {}
        self._ticks: dict[str, ExecutionTicks] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        self._stages: dict[str, StageSlots] = {}

    capacity = DRIVE_LIMIT

    def value(self, domain: str) -> ExecutionValue | None:
        """Return the value in force in a domain, or None."""
        return self._values.get(domain)

    def last_version(self, domain: str) -> int:
        """Return the last version that a domain has seen; 0 = none yet."""
        return self._last_version.get(domain, 0)

    def domains(self) -> list[str]:
        """Return the domains that hold a value or have reported ticks."""
        return sorted({*self._values, *self._ticks})

    def ticks(self, domain: str) -> ExecutionTicks:
        """Return the ticks counted in a domain."""
        return self._ticks.get(domain, ExecutionTicks())

    def begin(self, domain: str, value: ExecutionValue) -> None:
        """Take a domain's value at activation.

        Raises:
            EntryInvalidError, StaleVersionError: as :meth:`replace`.
        """
        self.replace(domain, value)
        self._first[domain] = value

    def replace(self, domain: str, value: ExecutionValue) -> ExecutionValue:
        """Compare and set on ``base_version``; return the value now in force.

        Raises:
            EntryInvalidError: wrong sizes, names or numbers.
            StaleVersionError: made from an older version than the one in force, or not newer.
        """
        check_execution(value)
        last = self.last_version(domain)
        if value.base_version < last:
            raise StaleVersionError(
                f"base_version must be {last}, the version in force, got {value.base_version}"
            )
        if value.version <= last:
            raise StaleVersionError(f"version must be above {last}, got {value.version}")
        self._put(domain, value)
        return value

    def lay_over(self, domain: str, asked: ExecutionValue) -> ExecutionValue:
        """Put what a stage asks for in force, and back what the stage before asked for.

        Args:
            domain: whose value.
            asked: slots that the stage sets (n, 32), NaN = not set; its versions are not looked at.

        Raises:
            EntryNotFoundError: the domain holds no value.
            EntryInvalidError: an unknown drive, a slot out of bounds, or a limit above what
                protects; nothing was changed.
        """
        present = self.value(domain)
        if present is None:
            raise EntryNotFoundError(f"domain must hold an execution value, got {domain!r}")
        stages = self._stages.setdefault(domain, StageSlots())
        slots, kept = stages.laid_over(present, asked)
        last = self.last_version(domain)
        value = dataclasses.replace(
            present,
            slots=slots,
            version=last + 1,
            base_version=last,
            provenance=asked.provenance,
        )
        check_execution(value)
        self._put(domain, value, keep=False)
        stages.kept = kept
        return value

    def durable(self, domain: str) -> ExecutionValue | None:
        """Return the value that is kept: the one in force, without what a stage has asked for."""
        value, stages = self.value(domain), self._stages.get(domain)
        if value is None or stages is None or not stages.kept:
            return value
        return dataclasses.replace(value, slots=stages.taken_back(value))

    def go_back(self, domain: str, reason: str, version: int = 0) -> int:
        """Put an earlier version in force again, as a new one; return the number of drives.

        Its drives are trusted again and not derated: whoever asks for it answers for them, and the
        injector sees for itself what is hot. Without a value at activation, 0 throws away.

        Args:
            domain: whose.
            reason: for people; becomes part of the provenance.
            version: to go back to, may be the one in force; 0 = the value at activation.

        Raises:
            EntryNotFoundError: the domain holds no value, or the version is not kept; nothing was
                changed.
        """
        if self.value(domain) is None:
            raise EntryNotFoundError(f"domain must hold an execution value, got {domain!r}")
        if version == 0 and domain not in self._first:
            return self.drop(domain)
        earlier = self._first[domain] if version == 0 else self._version(domain, version)
        slots = earlier.slots.copy()
        slots[:, _DERATING] = 1.0
        slots.flags.writeable = False
        last = self.last_version(domain)
        self._stages.pop(domain, None)
        self.replace(
            domain,
            dataclasses.replace(
                earlier,
                slots=slots,
                confident=np.ones(len(earlier.drives), dtype=np.bool_),
                version=last + 1,
                base_version=last,
                provenance=f"version {earlier.version} again: {reason} ({earlier.provenance})",
            ),
        )
        return len(earlier.drives)

    def versions(self) -> dict[str, int]:
        """Return the last version of every domain that ever had one."""
        return dict(self._last_version)

    def kept(self, domain: str) -> tuple[ExecutionValue, ...]:
        """Return the newest versions of a domain that can be gone back to, oldest first."""
        return tuple(self._kept.get(domain, ()))

    def restore(
        self,
        domain: str,
        value: ExecutionValue | None,
        last_version: int,
        versions: Iterable[ExecutionValue] = (),
    ) -> None:
        """Go on from what was stored; with None from the present value, as a newer version.

        Args:
            domain: whose.
            value: that was in force.
            last_version: that the domain has seen.
            versions: to go back to.
        """
        last = max(last_version, self.last_version(domain))
        present = self._values.get(domain)
        if value is None and present is not None and last_version >= present.version:
            last += 1
            value = dataclasses.replace(present, version=last, base_version=last - 1)
        if value is not None:
            # What went before this start is not lost, and what is put at the start is the newest.
            earlier = {kept.version: kept for kept in versions if kept.version < value.version}
            self._kept[domain] = deque(
                (earlier[version] for version in sorted(earlier)), maxlen=KEPT_VERSIONS
            )
            self._put(domain, value)
        self._last_version[domain] = last

    def drop(self, domain: str) -> int:
        """Throw a domain's value away; return the number of drives.

        Raises:
            EntryNotFoundError: the domain holds none.
        """
        value = self._values.pop(domain, None)
        if value is None:
            raise EntryNotFoundError(f"domain must hold an execution value, got {domain!r}")
        return len(value.drives)

    def _put(self, domain: str, value: ExecutionValue, *, keep: bool = True) -> None:
        self._values[domain] = value
        self._last_version[domain] = value.version
        if keep:
            self._kept.setdefault(domain, deque(maxlen=KEPT_VERSIONS)).append(value)

    def _version(self, domain: str, version: int) -> ExecutionValue:
        kept = self._kept.get(domain, deque())
        for value in kept:
            if value.version == version:
                return value
        known = ", ".join(str(value.version) for value in kept)
        raise EntryNotFoundError(
            f"execution version must be 0 (at activation) or one that is kept ({known}), "
            f"got {version}"
        )

    def count_ticks(self, domain: str, ticks: int, confident_ticks: int) -> None:
        """Add what an injector's counters have grown by; counters that fell were restarted."""
        seen_ticks, seen_confident = self._seen.get(domain, (0, 0))
        if ticks < seen_ticks or confident_ticks < seen_confident:
            seen_ticks = seen_confident = 0
        total = self.ticks(domain)
        self._seen[domain] = (ticks, confident_ticks)
        self._ticks[domain] = ExecutionTicks(
            total.ticks + ticks - seen_ticks, total.confident + confident_ticks - seen_confident
        )


def check_execution(value: ExecutionValue) -> None:
    """Refuse an execution value that cannot be stored.

    Raises:
        EntryInvalidError: naming the field, the limit and the value received.
    """
    count = len(value.drives)
    if not 1 <= count <= DRIVE_LIMIT:
        raise EntryInvalidError(f"execution.drives must be 1 to {DRIVE_LIMIT} names, got {count}")
    if len(set(value.drives)) != count or "" in value.drives:
        raise EntryInvalidError(
            f"execution.drives must be names without repetition, got {list(value.drives)}"
        )
    try:
        check_slots(value.drives, value.slots)
    except InputError as error:
        raise EntryInvalidError(f"execution.{error}") from error
    if np.shape(value.confident) != (count,):
        raise EntryInvalidError(
            f"execution.confident must be {count} bits, got {np.size(value.confident)}"
        )
