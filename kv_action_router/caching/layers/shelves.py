"""Rows of numbers for behavior values of one shape, so that a value takes no more than it needs.

A planned motion has uniform knots, which follow from its duration: bit by bit, or they are kept.
"""

from __future__ import annotations

from collections import deque
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import BehaviorValue, FloatArray, Pose

ROWS = 256  # of a chunk
TARGET_SIZE = 7


class Shape(NamedTuple):
    """What values have in common that stand on one shelf.

    Attributes:
        subtask, dimensions, degree: of the value.
        points: coefficients of each column (n).
        has_target: the value reaches a pose.
        is_uniform: its knots are those of ``unit_knots`` times their last.
    """

    subtask: str
    dimensions: tuple[str, ...]
    degree: int
    points: int
    has_target: bool
    is_uniform: bool

    @property
    def knots(self) -> slice:
        """Place of the knots among the numbers: behind phase, decay and target."""
        begin = 1 + len(self.dimensions) + TARGET_SIZE * self.has_target
        return slice(begin, begin + (1 if self.is_uniform else self.points + self.degree + 1))


@lru_cache(maxsize=256)
def unit_knots(points: int, degree: int) -> FloatArray:
    """Return clamped uniform knots on [0, 1] (points + degree + 1,); not to be written to."""
    inner = np.linspace(0.0, 1.0, points - degree + 1)
    knots = np.concatenate((np.zeros(degree), inner, np.ones(degree)))
    knots.flags.writeable = False
    return knots


def are_uniform(knots: FloatArray, points: int, degree: int) -> npt.NDArray[np.bool_]:
    """Say of knots (..., points + degree + 1) whether they follow from their last (...)."""
    return np.asarray((knots == unit_knots(points, degree) * knots[..., -1:]).all(axis=-1))


class Shelf:
    """Rows of one shape, in chunks that are made when they are needed.

    Invariant: a chunk is there while one of its rows is taken. One thread takes, writes and gives
    back, any thread reads: a reader of a row that was given back gets numbers that mean nothing.
    """

    def __init__(self, shape: Shape, precision: str) -> None:
        self.shape = shape
        self._precision = precision
        self._chunks: list[tuple[FloatArray, npt.NDArray[np.floating[Any]]] | None] = []
        self._taken: list[int] = []  # rows of each chunk
        self._free: deque[int] = deque()

    def take(self, count: int) -> npt.NDArray[np.intp]:
        """Return rows that nobody has (count,)."""
        while len(self._free) < count:
            self._add_chunk()
        rows = np.array([self._free.popleft() for _ in range(count)], dtype=np.intp)
        for number, taken in zip(*np.unique(rows // ROWS, return_counts=True), strict=True):
            self._taken[number] += int(taken)
        return rows

    def give_back(self, row: int) -> None:
        """Give a row back; what nobody uses of the memory goes."""
        self._free.append(row)
        number = row // ROWS
        self._taken[number] -= 1
        if self._taken[number] == 0:
            self._chunks[number] = None
            self._free = deque(row for row in self._free if row // ROWS != number)

    def write(
        self,
        rows: npt.NDArray[np.intp],
        numbers: FloatArray,
        coefficients: npt.NDArray[np.floating[Any]],
    ) -> None:
        """Write values into rows (r,) that were taken.

        Args:
            rows: in any order.
            numbers: phase, decay, target, and knots or duration (r, ``shape.knots.stop``).
            coefficients: (r, n * d).
        """
        chunks, places = np.divmod(rows, ROWS)
        for number in np.unique(chunks).tolist():
            chosen, chunk = chunks == number, self._chunks[number]
            assert chunk is not None
            chunk[0][places[chosen]] = numbers[chosen]
            chunk[1][places[chosen]] = coefficients[chosen]

    def read(self, row: int) -> BehaviorValue:
        """Return a copy of a value."""
        shape, chunk = self.shape, self._chunks[row // ROWS]
        width = len(shape.dimensions)
        if chunk is None:  # the value was torn: the caller finds out, this must not raise
            numbers, flat = np.zeros(shape.knots.stop), np.zeros(shape.points * width)
        else:
            numbers = chunk[0][row % ROWS].copy()
            flat = chunk[1][row % ROWS].astype(np.float64)
        knots = numbers[shape.knots]
        if shape.is_uniform:
            knots = unit_knots(shape.points, shape.degree) * knots
        target = None
        if shape.has_target:
            target = Pose(numbers[1 + width : 4 + width], numbers[4 + width : 8 + width])
        return BehaviorValue(
            subtask=shape.subtask,
            dimensions=shape.dimensions,
            degree=shape.degree,
            knots=knots,
            coefficients=flat.reshape(shape.points, width),
            phase=numbers.item(0),
            decay=numbers[1 : 1 + width],
            target=target,
        )

    def _add_chunk(self) -> None:
        shape = self.shape
        chunk = (
            np.zeros((ROWS, shape.knots.stop)),
            np.zeros((ROWS, shape.points * len(shape.dimensions)), dtype=self._precision),
        )
        if None in self._chunks:
            number = self._chunks.index(None)
            self._chunks[number] = chunk
        else:
            number = len(self._chunks)
            self._chunks.append(chunk)
            self._taken.append(0)
        self._free.extend(range(number * ROWS, (number + 1) * ROWS))
