"""The behavior layer: B-spline values in fixed-capacity arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.layers.slots import SlotPool
from kv_action_router.caching.partitions import Numbered
from kv_action_router.contracts import BehaviorValue, FloatArray, Pose
from kv_action_router.errors import EntryInvalidError

LARGEST_DEGREE = 9


@dataclass(frozen=True, slots=True)
class BehaviorSize:
    """Room for one value: numbers in the coefficients, knots, columns.

    Attributes:
        precision: ``double`` or ``single``, of the coefficients as they are kept. Single takes half
            of the memory and rounds a position below 4 rad by at most 1.2e-7 rad.
    """

    coefficients: int = 768
    knots: int = 160
    dimensions: int = 32
    precision: str = "double"


class BehaviorLayer:
    """Fixed-capacity arrays of behavior values.

    Invariant: a slot is written between the pool's claim and the store of the pointer to it, and
    never while a pointer to it can be read. One thread writes, any thread reads.
    """

    def __init__(self, capacity: int, size: BehaviorSize, pool: SlotPool | None = None) -> None:
        self.pool = pool or SlotPool(capacity)
        self.size = size
        rows = self.pool.size
        self._coefficients: npt.NDArray[np.floating[Any]] = np.zeros(
            (rows, size.coefficients), dtype=size.precision
        )
        self._knots: FloatArray = np.zeros((rows, size.knots))
        self._decay: FloatArray = np.zeros((rows, size.dimensions))
        self._target: FloatArray = np.zeros((rows, 7))
        self._has_target: npt.NDArray[np.bool_] = np.zeros(rows, dtype=np.bool_)
        self._phase: FloatArray = np.zeros(rows)
        self._degree: npt.NDArray[np.int32] = np.zeros(rows, dtype=np.int32)
        self._length: npt.NDArray[np.int32] = np.zeros(rows, dtype=np.int32)
        self._subtask: npt.NDArray[np.int32] = np.zeros(rows, dtype=np.int32)
        self._columns: npt.NDArray[np.int32] = np.zeros(rows, dtype=np.int32)
        self._subtasks: Numbered[str] = Numbered()
        self._column_sets: Numbered[tuple[str, ...]] = Numbered()

    @property
    def bytes_per_entry(self) -> int:
        """Memory of one value [bytes]."""
        arrays = (self._coefficients, self._knots, self._decay, self._target)
        return sum(array.strides[0] for array in arrays) + 8 + 1 + 4 * 4

    def put(self, value: BehaviorValue) -> int:
        """Write a checked value into a free slot; return the slot, which no pointer names yet."""
        slot = self.pool.claim()
        self.write(slot, value)
        return slot

    def write(self, slot: int, value: BehaviorValue) -> None:
        """Write a checked value into a slot that nobody can see."""
        length, columns = value.coefficients.shape
        self._subtask[slot] = self._subtasks.number(value.subtask)
        self._columns[slot] = self._column_sets.number(tuple(value.dimensions))
        self._degree[slot] = value.degree
        self._length[slot] = length
        self._knots[slot, : len(value.knots)] = value.knots
        self._coefficients[slot, : length * columns] = np.ravel(value.coefficients)
        self._phase[slot] = value.phase
        self._decay[slot, :columns] = value.decay
        self._has_target[slot] = value.target is not None
        if value.target is not None:
            self._target[slot, :3] = value.target.position
            self._target[slot, 3:] = value.target.orientation

    def restore(
        self,
        shape: BehaviorValue,
        knots: FloatArray,
        coefficients: FloatArray,
        phase: FloatArray,
        decay: FloatArray,
        target: FloatArray | None,
    ) -> npt.NDArray[np.int32]:
        """Write checked values of one shape into free slots; return the slots (r,).

        Args:
            shape: any value with the same subtask, columns, degree and number of points.
            knots: (r, n + k + 1).
            coefficients: (r, n * d).
            phase: (r,).
            decay: (r, d).
            target: position and quaternion (r, 7); None = they act on none.
        """
        slots = np.array([self.pool.claim() for _ in range(len(knots))], dtype=np.int32)
        self._subtask[slots] = self._subtasks.number(shape.subtask)
        self._columns[slots] = self._column_sets.number(tuple(shape.dimensions))
        self._degree[slots], self._length[slots] = shape.degree, len(shape.coefficients)
        for table, rows in (
            (self._knots, knots),
            (self._coefficients, coefficients),
            (self._decay, decay),
        ):
            table[slots, : rows.shape[1]] = rows
        self._phase[slots] = phase
        self._has_target[slots] = target is not None
        if target is not None:
            self._target[slots] = target
        return slots

    def read(self, slot: int) -> BehaviorValue:
        """Return a copy of a value; ask the pool afterwards whether the slot is still intact."""
        columns = self._column_sets[int(self._columns[slot])]
        length, degree = int(self._length[slot]), int(self._degree[slot])
        width = len(columns)
        coefficients = self._coefficients[slot, : length * width].astype(np.float64)
        # A value that is torn may not fit together: the caller finds out, this must not raise.
        coefficients.resize((length, width), refcheck=False)
        target = None
        if self._has_target[slot]:
            target = Pose(self._target[slot, :3].copy(), self._target[slot, 3:].copy())
        return BehaviorValue(
            subtask=self._subtasks[int(self._subtask[slot])],
            dimensions=columns,
            degree=degree,
            knots=self._knots[slot, : length + degree + 1].copy(),
            coefficients=coefficients,
            phase=float(self._phase[slot]),
            decay=self._decay[slot, :width].copy(),
            target=target,
        )

    def release(self, slot: int) -> None:
        """Give a value's slot back; no pointer to it may be left."""
        self.pool.release(slot)


def check_behavior(value: BehaviorValue | None, size: BehaviorSize) -> BehaviorValue:
    """Return a behavior value that can be stored.

    Raises:
        EntryInvalidError: naming the field, the limit and the value received.
    """
    if value is None:
        raise EntryInvalidError("behavior must be given, got none")
    _check_names(value, size)
    coefficients, knots = np.asarray(value.coefficients), np.asarray(value.knots)
    columns = len(value.dimensions)
    _require(coefficients.ndim == 2, "coefficients", "two-dimensional", coefficients.shape)
    length = coefficients.shape[0]
    _require(length > 0, "coefficients", "at least one point", f"{length} points")
    _require(
        coefficients.shape[1] == columns,
        "coefficients",
        f"{columns} columns",
        coefficients.shape[1],
    )
    _require(
        coefficients.size <= size.coefficients,
        "coefficients",
        f"at most {size.coefficients} numbers",
        coefficients.size,
    )
    _require(1 <= value.degree <= LARGEST_DEGREE, "degree", f"1 to {LARGEST_DEGREE}", value.degree)
    _require(
        length > value.degree,
        "coefficients",
        f"at least degree + 1 = {value.degree + 1} points",
        f"{length} points",
    )
    expected = length + value.degree + 1
    _require(knots.shape == (expected,), "knots", f"{expected} values", knots.size)
    _require(knots.size <= size.knots, "knots", f"at most {size.knots} values", knots.size)
    for name, array in (("coefficients", coefficients), ("knots", knots)):
        _require(bool(np.isfinite(array).all()), name, "finite", "a value that is not")
    _check_knots(knots, value.degree)
    _require(0.0 <= value.phase <= 1.0, "phase", "0 to 1", value.phase)
    decay = np.asarray(value.decay)
    _require(decay.shape == (columns,), "decay", f"{columns} values", decay.size)
    _require(bool(((decay >= 0.0) & (decay <= 1.0)).all()), "decay", "0 to 1", decay.tolist())
    if value.target is not None:
        _check_target(value.target)
    return value


def _check_names(value: BehaviorValue, size: BehaviorSize) -> None:
    _require(bool(value.subtask), "subtask", "a name with its version", value.subtask)
    columns = value.dimensions
    _require(
        0 < len(columns) <= size.dimensions,
        "dimensions",
        f"1 to {size.dimensions} columns",
        len(columns),
    )
    for column in columns:
        joint, _, interface = column.rpartition("/")
        _require(bool(joint and interface), "dimensions", "'joint/interface'", column)
    double = next((name for name in columns if columns.count(name) > 1), None)
    _require(double is None, "dimensions", "without repetition", double)


def _check_knots(knots: FloatArray, degree: int) -> None:
    _require(bool((np.diff(knots) >= 0.0).all()), "knots", "in rising order", "a falling one")
    _require(knots[-1] > knots[0], "knots", "of a positive duration", knots[-1] - knots[0])
    clamped = knots[0] == knots[degree] and knots[-1] == knots[-1 - degree]
    _require(bool(clamped), "knots", f"clamped ({degree + 1} equal ones at either end)", "others")
    inner = knots[degree + 1 : -degree - 1]
    if inner.size > degree:
        repeated = bool((inner[degree:] == inner[:-degree]).any())
        _require(not repeated, "knots", f"repeated at most {degree} times inside", "more")


def _check_target(target: Pose) -> None:
    position, orientation = np.asarray(target.position), np.asarray(target.orientation)
    _require(
        position.shape == (3,) and bool(np.isfinite(position).all()),
        "target.position",
        "3 finite values",
        position.tolist(),
    )
    _require(
        orientation.shape == (4,) and bool(np.isfinite(orientation).all()),
        "target.orientation",
        "4 finite values",
        orientation.tolist(),
    )
    norm = float(np.linalg.norm(orientation))
    _require(abs(norm - 1.0) < 1e-3, "target.orientation", "a unit quaternion", f"norm {norm:g}")


def _require(good: bool, field: str, limit: str, value: object) -> None:
    if not good:
        raise EntryInvalidError(f"behavior.{field} must be {limit}, got {value!r}")
