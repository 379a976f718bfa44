"""How full the cache is, domain by domain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kv_action_router.caching.index.base import FREE
from kv_action_router.caching.layers.task import NO_BEHAVIOR, TaskLayer
from kv_action_router.caching.partitions import Partitions


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What a domain holds: task entries, those with a behavior value, those without confidence."""

    tasks: int
    behaviors: int
    not_confident: int


NOTHING = Occupancy(0, 0, 0)


def occupancy_of(tasks: TaskLayer, partitions: Partitions) -> dict[str, Occupancy]:
    """Return what each domain holds that ever held an entry."""
    size, end = len(partitions) + 1, tasks.index.end
    held = tasks.index.partitions[:end] - FREE  # 0 = free, from 1 the partitions
    counts = [
        np.bincount(rows, minlength=size).tolist()
        for rows in (
            held,
            held[tasks.behavior[:end] != NO_BEHAVIOR],
            held[~tasks.confident[:end]],
        )
    ]
    found: dict[str, Occupancy] = {}
    for number in range(size - 1):
        domain = partitions[number].domain
        before = found.get(domain, NOTHING)
        found[domain] = Occupancy(
            before.tasks + counts[0][number + 1],
            before.behaviors + counts[1][number + 1],
            before.not_confident + counts[2][number + 1],
        )
    return found
