"""Partitions: the combinations of domain, encoder, intent, subtask and robot that hold entries.

Each combination gets a small number, so that the search masks by one comparison a row.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import ROBOT_SIZE, ROBOT_SLICE, Float32Array

T = TypeVar("T")

# Slices come from a hash: two robots differ by far more, a key that went through float16 by less.
ROBOT_TOLERANCE = 1e-3


class Partition(NamedTuple):
    """Where an entry is a candidate."""

    domain: str
    encoder_id: str
    intent_id: str
    subtask: str
    robot: int


class Numbered(Generic[T]):
    """Gives each distinct value a number, for good. One thread adds, any thread looks up."""

    def __init__(self) -> None:
        self._values: list[T] = []
        self._numbers: dict[T, int] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, number: int) -> T:
        return self._values[number]

    def number(self, value: T) -> int:
        """Return the number of a value; a new one if it has none yet."""
        found = self._numbers.get(value)
        if found is None:
            found = len(self._values)
            self._values.append(value)
            self._numbers[value] = found
        return found

    def find(self, value: T) -> int:
        """Return the number of a value, or -1."""
        return self._numbers.get(value, -1)


class Partitions:
    """All partitions that ever held an entry, and the robots' slices."""

    def __init__(self) -> None:
        self._partitions: Numbered[Partition] = Numbered()
        self._robots: list[Float32Array] = []
        self.count = 0  # read at every match: what ``len`` says, for less

    def __getitem__(self, number: int) -> Partition:
        return self._partitions[number]

    def __len__(self) -> int:
        return len(self._partitions)

    def number(self, partition: Partition) -> int:
        """Return the number of a partition, made if need be."""
        number = self._partitions.number(partition)
        self.count = len(self._partitions)
        return number

    def domain_numbers(self) -> npt.NDArray[np.intp]:
        """Return a number for the domain of each partition (len(self),); equal = same domain."""
        first: dict[str, int] = {}
        return np.array(
            [first.setdefault(self[number].domain, len(first)) for number in range(len(self))],
            dtype=np.intp,
        )

    def robot(self, key: Float32Array) -> int:
        """Return the number of a prepared key's robot, or -1 when it has no entry yet."""
        part = key[ROBOT_SLICE]
        for number, known in enumerate(self._robots):
            if float(np.abs(known - part).max()) <= ROBOT_TOLERANCE:
                return number
        return -1

    def robot_slice(self, number: int) -> Float32Array:
        """Return the slice of a numbered robot (8,)."""
        return self._robots[number]

    def add_robot(self, key: Float32Array) -> int:
        """Return the number of a prepared key's robot, made if need be."""
        found = self.robot(key)
        if found >= 0:
            return found
        self._robots.append(key[ROBOT_SLICE].reshape(ROBOT_SIZE).copy())
        return len(self._robots) - 1

    def find(
        self,
        domain: str,
        encoder_id: str | None = None,
        intent_id: str | None = None,
        subtask: str | None = None,
        robot: int | None = None,
    ) -> list[int]:
        """Return the numbers of the partitions that agree; None agrees with all."""
        return [
            number
            for number in range(len(self._partitions))
            if (p := self._partitions[number]).domain == domain
            and (encoder_id is None or p.encoder_id == encoder_id)
            and (intent_id is None or p.intent_id == intent_id)
            and (subtask is None or p.subtask == subtask)
            and (robot is None or p.robot == robot)
        ]
