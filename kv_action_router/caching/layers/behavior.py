"""The behavior layer: B-spline values, a fixed number of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.layers.shelves import TARGET_SIZE, Shape, Shelf, are_uniform
from kv_action_router.caching.layers.slots import SlotPool
from kv_action_router.caching.partitions import Numbered
from kv_action_router.contracts import BehaviorValue, FloatArray, Pose
from kv_action_router.errors import EntryInvalidError
from kv_action_router.tasks.subtask import why_no_subtask

LARGEST_DEGREE = 9
_NOWHERE = -1  # place of a slot that was never written
_SHELF = 2**32  # places of one shelf


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
    """Behavior values in a fixed number of slots; each takes the memory that its shape needs.

    Invariant: a slot is written between the pool's claim and the store of the pointer to it, and
    never while a pointer to it can be read. It keeps its row on a shelf until it is claimed again,
    so whoever read that row from then on finds the slot not intact. One thread writes, any thread
    reads.
    """

    def __init__(self, capacity: int, size: BehaviorSize, pool: SlotPool | None = None) -> None:
        self.pool = pool or SlotPool(capacity)
        self.size = size
        self._shapes: Numbered[Shape] = Numbered()
        self._shelves: list[Shelf] = []
        # Shelf and row of each slot in one number: a reader never sees one without the other.
        self._places: npt.NDArray[np.int64] = np.full(self.pool.size, _NOWHERE, dtype=np.int64)

    @property
    def largest_value(self) -> int:
        """Memory of the largest value that there is room for [bytes]."""
        numbers = 1 + self.size.dimensions + TARGET_SIZE + self.size.knots
        coefficients = self.size.coefficients * np.dtype(self.size.precision).itemsize
        return self._places.itemsize + 8 * numbers + coefficients

    def put(self, value: BehaviorValue) -> int:
        """Write a checked value into a free slot; return the slot, which no pointer names yet."""
        slot = self.pool.claim()
        self.write(slot, value)
        return slot

    def write(self, slot: int, value: BehaviorValue) -> None:
        """Write a checked value into a slot that nobody can see."""
        target = None
        if value.target is not None:
            target = np.concatenate((value.target.position, value.target.orientation))[None]
        self._write(
            np.array([slot]),
            value,
            np.asarray(value.knots)[None],
            np.ravel(value.coefficients)[None],
            np.array([value.phase]),
            np.asarray(value.decay)[None],
            target,
        )

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
        slots = self.pool.claim_all(len(knots))
        self._write(slots, shape, knots, coefficients, phase, decay, target)
        return slots.astype(np.int32)

    def read(self, slot: int) -> BehaviorValue:
        """Return a copy of a value; ask the pool afterwards whether the slot is still intact."""
        number, row = divmod(self._places.item(slot), _SHELF)
        return self._shelves[number].read(row)

    def release(self, slot: int) -> None:
        """Give a value's slot back; no pointer to it may be left."""
        self.pool.release(slot)

    # --- inside ---

    def _write(
        self,
        slots: npt.NDArray[np.intp],
        like: BehaviorValue,
        knots: FloatArray,
        coefficients: FloatArray,
        phase: FloatArray,
        decay: FloatArray,
        target: FloatArray | None,
    ) -> None:
        """Write values into slots that nobody can see; arguments as of :meth:`restore`."""
        points = len(like.coefficients)
        uniform = are_uniform(knots, points, like.degree)
        head = [phase[:, None], decay] if target is None else [phase[:, None], decay, target]
        for is_uniform in (True, False):
            chosen = np.flatnonzero(uniform == is_uniform)
            if not chosen.size:
                continue
            shape = Shape(
                like.subtask,
                tuple(like.dimensions),
                like.degree,
                points,
                target is not None,
                is_uniform,
            )
            tail = knots[:, -1:] if is_uniform else knots
            numbers = np.concatenate([*head, tail], axis=1)
            self._stand(slots[chosen], shape, numbers[chosen], coefficients[chosen])

    def _stand(
        self,
        slots: npt.NDArray[np.intp],
        shape: Shape,
        numbers: FloatArray,
        coefficients: FloatArray,
    ) -> None:
        """Write values of one shape; those slots that have no row on its shelf get one."""
        number = self._number(shape)
        shelves, places = self._shelves, self._places[slots]
        elsewhere = places // _SHELF != number
        for place in places[elsewhere & (places != _NOWHERE)].tolist():
            shelves[place // _SHELF].give_back(place % _SHELF)
        places[elsewhere] = number * _SHELF + shelves[number].take(int(elsewhere.sum()))
        shelves[number].write(places % _SHELF, numbers, coefficients)
        self._places[slots] = places

    def _number(self, shape: Shape) -> int:
        """Return the number of the shelf for a shape, made if need be."""
        number = self._shapes.number(shape)
        if number == len(self._shelves):
            self._shelves.append(Shelf(shape, self.size.precision))
        return number


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
    if why := why_no_subtask(value.subtask):
        raise EntryInvalidError(f"behavior.subtask must {why}")
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
