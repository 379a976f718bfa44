"""An entry as it is stored: one row, and the checksum that says whether it is still whole.

    row = (entry_id, version, successes, failures, failures_in_row, confident, last_used,
           layout, numbers, checksum)

``layout`` is JSON (UTF-8): where the entry is a candidate, and the shape of its numbers.
``numbers`` is little-endian: the key (64 float32), then float64: phase, decay (d), target (7, if
there is one), knots (n + k + 1), coefficients (n, d), rows one after the other. An entry whose
behavior was thrown away has no columns, and its numbers end with the key. Nothing here depends on
a hash seed.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from kv_action_router.contracts import KEY_SIZE, BehaviorValue, Float32Array, FloatArray, Pose
from kv_action_router.errors import EntryInvalidError

Row = tuple[int, int, int, int, int, int, int, bytes, bytes, int]

KEY_BYTES = 4 * KEY_SIZE
TARGET_SIZE = 7
LARGEST_LAYOUT = 65_536  # bytes of the JSON
_COUNTERS = struct.Struct("<7q")
_FIELDS = ("domain", "encoder_id", "intent_id", "subtask", "dimensions", "degree", "points")


@dataclass(frozen=True)
class Layout:
    """Where an entry is a candidate, and the shape of its numbers.

    Attributes:
        domain, encoder_id, intent_id, subtask: of its partition.
        dimensions: columns of the behavior (d,); empty = it has none any more.
        degree, points: of the spline (k, n).
        has_target: the behavior reaches a pose.
    """

    domain: str
    encoder_id: str
    intent_id: str
    subtask: str
    dimensions: tuple[str, ...]
    degree: int
    points: int
    has_target: bool

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Float64 values behind the key, by name: phase, decay, target, knots, coefficients."""
        width = len(self.dimensions)
        if not width:
            return {}
        sizes = {
            "phase": 1,
            "decay": width,
            "target": TARGET_SIZE if self.has_target else 0,
            "knots": self.points + self.degree + 1,
            "coefficients": self.points * width,
        }
        parts, begin = {}, 0
        for name, size in sizes.items():
            parts[name] = slice(begin, begin + size)
            begin += size
        return parts

    @property
    def size(self) -> int:
        """Length of the numbers [bytes]."""
        values = self.parts["coefficients"].stop if self.dimensions else 0
        return int(KEY_BYTES + 8 * values)

    def text(self) -> bytes:
        """Return the layout as canonical JSON."""
        content = {name: getattr(self, name) for name in _FIELDS}
        content["target"] = self.has_target
        return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()

    @staticmethod
    def read(text: Any) -> Layout:
        """Return the layout that a text describes.

        Raises:
            EntryInvalidError: it describes none.
        """
        if not isinstance(text, bytes) or len(text) > LARGEST_LAYOUT:
            raise EntryInvalidError(f"layout must be JSON of at most {LARGEST_LAYOUT} bytes")
        try:
            content = json.loads(text)
            names = [content[name] for name in _FIELDS[:4]]
            dimensions, target = content["dimensions"], content["target"]
            degree, points = content["degree"], content["points"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise EntryInvalidError(f"layout must name {', '.join(_FIELDS)}, target") from error
        good = (
            isinstance(dimensions, list)
            and all(isinstance(name, str) for name in (*names, *dimensions))
            and type(target) is bool
            and all(type(size) is int and 0 <= size <= 1_000_000 for size in (degree, points))
        )
        if not good:
            raise EntryInvalidError(f"layout must have texts and sizes, got {text[:80]!r}")
        domain, encoder_id, intent_id, subtask = names
        return Layout(
            domain, encoder_id, intent_id, subtask, tuple(dimensions), degree, points, target
        )

    def example(self) -> BehaviorValue:
        """Return a behavior of this shape at rest, for the checks that depend on the shape only."""
        width, inner = len(self.dimensions), max(2, self.points - self.degree + 1)
        ends = np.zeros(self.degree), np.ones(self.degree)
        knots = np.concatenate([ends[0], np.linspace(0.0, 1.0, inner), ends[1]])
        return BehaviorValue(
            subtask=self.subtask,
            dimensions=self.dimensions,
            degree=self.degree,
            knots=knots,
            coefficients=np.zeros((self.points, width)),
            phase=0.0,
            decay=np.zeros(width),
            target=None,
        )


@dataclass(frozen=True, slots=True)
class EntryRecord:
    """One entry, whole.

    Attributes:
        entry_id, version: of the entry.
        domain, encoder_id, intent_id, subtask: of its partition.
        key: as ``prepare_key`` returned it (64,).
        behavior: None = it was thrown away.
        successes, failures, failures_in_row, confident, last_used: as in ``TaskEntry``.
    """

    entry_id: int
    version: int
    domain: str
    encoder_id: str
    intent_id: str
    subtask: str
    key: Float32Array
    behavior: BehaviorValue | None
    successes: int = 0
    failures: int = 0
    failures_in_row: int = 0
    confident: bool = True
    last_used: int = 0

    @property
    def layout(self) -> Layout:
        """Partition and shape."""
        where = (self.domain, self.encoder_id, self.intent_id, self.subtask)
        value = self.behavior
        if value is None:
            return Layout(*where, (), 0, 0, False)
        points = len(value.coefficients)
        target = value.target is not None
        return Layout(*where, tuple(value.dimensions), int(value.degree), points, target)

    def row(self) -> Row:
        """Return the row that stores the entry."""
        key = np.asarray(self.key, dtype="<f4").tobytes()
        numbers = key + _behavior_bytes(self.behavior)
        layout = self.layout.text()
        counters = (
            self.entry_id,
            self.version,
            self.successes,
            self.failures,
            self.failures_in_row,
            int(self.confident),
            self.last_used,
        )
        return (*counters, layout, numbers, checksum((*counters, layout, numbers)))

    @staticmethod
    def of(row: Row) -> EntryRecord:
        """Return the entry that a row stores.

        Raises:
            EntryInvalidError: its numbers do not have the length that its layout tells.
        """
        layout = Layout.read(row[7])
        if len(row[8]) != layout.size:
            raise EntryInvalidError(f"numbers must be {layout.size} bytes, got {len(row[8])}")
        key = np.frombuffer(row[8], dtype="<f4", count=KEY_SIZE).astype(np.float32)
        values = np.frombuffer(row[8], dtype="<f8", offset=KEY_BYTES).astype(np.float64)
        return EntryRecord(
            entry_id=row[0],
            version=row[1],
            domain=layout.domain,
            encoder_id=layout.encoder_id,
            intent_id=layout.intent_id,
            subtask=layout.subtask,
            key=key,
            behavior=_behavior(layout, values),
            successes=row[2],
            failures=row[3],
            failures_in_row=row[4],
            confident=bool(row[5]),
            last_used=row[6],
        )


def checksum(fields: tuple[Any, ...]) -> int:
    """Return the CRC-32 over the canonical bytes of a row's other columns.

    Raises:
        EntryInvalidError: a column has a type or size that no entry has.
    """
    try:
        head = zlib.crc32(_COUNTERS.pack(*fields[:7]))
        return zlib.crc32(fields[8], zlib.crc32(fields[7], head))
    except (struct.error, TypeError) as error:
        raise EntryInvalidError("row must hold seven integers and two pieces of bytes") from error


def is_whole(row: tuple[Any, ...]) -> bool:
    """Say whether a row is as it was written."""
    try:
        return checksum(row[:9]) == row[9]
    except EntryInvalidError:
        return False


def _behavior_bytes(value: BehaviorValue | None) -> bytes:
    if value is None:
        return b""
    parts: list[Any] = [[value.phase], value.decay]
    if value.target is not None:
        parts += [value.target.position, value.target.orientation]
    parts += [value.knots, np.ravel(value.coefficients)]
    return np.concatenate(parts).astype("<f8").tobytes()


def _behavior(layout: Layout, values: FloatArray) -> BehaviorValue | None:
    if not layout.dimensions:
        return None
    part = {name: values[place] for name, place in layout.parts.items()}
    target = part["target"]
    return BehaviorValue(
        subtask=layout.subtask,
        dimensions=layout.dimensions,
        degree=layout.degree,
        knots=part["knots"].copy(),
        coefficients=part["coefficients"].reshape(layout.points, len(layout.dimensions)).copy(),
        phase=float(part["phase"][0]),
        decay=part["decay"].copy(),
        target=Pose(target[:3].copy(), target[3:].copy()) if layout.has_target else None,
    )
