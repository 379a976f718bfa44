"""Small state beside the entries: a name, JSON, and the CRC-32 of both."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kv_action_router.caching.domains import check_name
from kv_action_router.caching.layers.execution import check_execution
from kv_action_router.contracts import ExecutionValue
from kv_action_router.errors import EntryInvalidError, RouterError

StateRow = tuple[int, str, str, int]

PROGRESS = "progress"
GRANTS = "grants"
EXECUTION = "execution/"  # domain: its value in force
VERSION = "execution_version/"  # domain and version: a value to go back to


@dataclass(frozen=True)
class StoredExecution:
    """Durable copy of a domain's execution value.

    Attributes:
        last_version: that the domain has seen.
        origin: CRC-32 of the value from the file of execution values that it began with; 0 = none.
        value: None = it was thrown away.
    """

    last_version: int
    origin: int
    value: ExecutionValue | None


@dataclass
class StoredState:
    """All small state.

    Attributes:
        last_id: highest entry id that was ever given.
        decisions: clock of ``last_used``.
        entries: rows in the table; None = not known.
        series: number of the database, drawn when it was made; 0 = not known.
        commits: since then.
        grants: (owner, reader).
        execution: by domain.
        versions: execution values to go back to, by domain and version.
        bad: names of rows that could not be used.
    """

    last_id: int = 0
    decisions: int = 0
    entries: int | None = None
    series: int = 0
    commits: int = 0
    grants: set[tuple[str, str]] = field(default_factory=set)
    execution: dict[str, StoredExecution] = field(default_factory=dict)
    versions: dict[tuple[str, int], ExecutionValue] = field(default_factory=dict)
    bad: list[str] = field(default_factory=list)


def state_row(name: str, content: Any) -> tuple[str, str, int]:
    """Return name, text and checksum of a piece of state."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    return name, text, _checksum(name, text)


def is_whole_state(row: tuple[Any, ...]) -> bool:
    """Say whether (number, name, content, checksum) is as it was written."""
    name, text = row[1], row[2]
    return isinstance(name, str) and isinstance(text, str) and _checksum(name, text) == row[3]


def read_state(rows: Mapping[str, StateRow]) -> StoredState:
    """Return what rows say that are whole; what cannot be used is named, the rest is kept."""
    state = StoredState()
    for name, row in rows.items():
        try:
            content = json.loads(row[2])
            if name == PROGRESS:
                numbers = [int(content[key]) for key in ("last_id", "decisions", "entries")]
                state.last_id, state.decisions, state.entries = numbers
                # Files of earlier releases have neither.
                state.series = int(content.get("series", 0))
                state.commits = int(content.get("commits", 0))
            elif name == GRANTS:
                for owner, reader in content:
                    pair = check_name("owner_domain", owner), check_name("reader_domain", reader)
                    state.grants.add(pair)
            elif name.startswith(EXECUTION):
                domain = check_name("domain", name.removeprefix(EXECUTION))
                state.execution[domain] = _execution(content)
            elif name.startswith(VERSION):
                domain, _, number = name.removeprefix(VERSION).rpartition("/")
                value = _value(content)
                if value.version != int(number):
                    raise EntryInvalidError(f"version must be {number}, got {value.version}")
                state.versions[check_name("domain", domain), value.version] = value
        except (ValueError, KeyError, TypeError, RouterError) as error:
            state.bad.append(f"{name} ({error})")
    return state


def execution_content(stored: StoredExecution) -> dict[str, Any]:
    """Return an execution value as JSON knows it; the inverse of what :func:`read_state` does."""
    content: dict[str, Any] = {"last_version": stored.last_version, "origin": stored.origin}
    if stored.value is not None:
        content["value"] = value_content(stored.value)
    return content


def version_name(domain: str, version: int) -> str:
    """Return the name of the piece of state that holds a value to go back to."""
    return f"{VERSION}{domain}/{version}"


def value_content(value: ExecutionValue) -> dict[str, Any]:
    """Return one execution value as JSON knows it."""
    return {
        "drives": list(value.drives),
        "slots": np.asarray(value.slots, dtype=np.float32).tolist(),
        "confident": [bool(bit) for bit in value.confident],
        "version": int(value.version),
        "base_version": int(value.base_version),
        "provenance": value.provenance,
    }


def origin_of(value: ExecutionValue | None) -> int:
    """Return the CRC-32 of an execution value's drives and slots; 0 = there is none."""
    if value is None:
        return 0
    slots = np.asarray(value.slots, dtype="<f4").tobytes()
    return zlib.crc32(slots, zlib.crc32("\0".join(value.drives).encode()))


def _execution(content: Any) -> StoredExecution:
    found = content.get("value")
    value = None if found is None else _value(found)
    last = int(content["last_version"])
    if value is not None and not 0 < value.version <= last:
        raise EntryInvalidError(f"execution.version must be 1 to {last}, got {value.version}")
    return StoredExecution(last, int(content["origin"]), value)


def _value(found: Any) -> ExecutionValue:
    slots = np.array(found["slots"], dtype=np.float32)
    confident = np.array(found["confident"], dtype=np.bool_)
    slots.flags.writeable = confident.flags.writeable = False
    value = ExecutionValue(
        drives=tuple(found["drives"]),
        slots=slots,
        confident=confident,
        version=int(found["version"]),
        base_version=int(found["base_version"]),
        provenance=str(found["provenance"]),
    )
    if not all(isinstance(drive, str) for drive in value.drives):
        raise EntryInvalidError("execution.drives must be names")
    check_execution(value)
    return value


def _checksum(name: str, text: str) -> int:
    return zlib.crc32(_bytes(text), zlib.crc32(_bytes(name)))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
