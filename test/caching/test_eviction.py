"""Eviction policies."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.caching.eviction import LeastRecentlyUsed, LeastUseful, make_policy
from kv_action_router.caching.key_index import prepare_key
from kv_action_router.caching.layers.task import TaskLayer


@pytest.fixture
def layer(build) -> TaskLayer:
    """Four entries in slots 0 to 3, used at 10, 20, 30 and 40."""
    made = TaskLayer(4)
    for slot in range(4):
        made.put(prepare_key(build.vector(target=slot + 1)), 0, slot, slot + 1)
        made.last_used[slot] = 10 * (slot + 1)
    return made


def test_least_recently_used(layer: TaskLayer) -> None:
    policy = LeastRecentlyUsed()
    assert policy.choose(layer, np.arange(4), 50) == 0
    assert policy.choose(layer, np.array([3, 2]), 50) == 2
    layer.last_used[0] = 45
    assert policy.choose(layer, np.arange(4), 50) == 1


def test_least_useful_weighs_success_and_recency(layer: TaskLayer) -> None:
    policy = LeastUseful()
    layer.last_used[:4] = 50
    layer.successes[:4] = (9, 9, 9, 9)
    layer.failures[:4] = (0, 5, 0, 0)
    assert policy.choose(layer, np.arange(4), 50) == 1
    layer.last_used[2] = 10
    assert policy.choose(layer, np.arange(4), 50) == 2


def test_least_useful_takes_the_one_without_confidence_first(layer: TaskLayer) -> None:
    layer.successes[3] = 1000
    layer.confident[3] = False
    assert LeastUseful().choose(layer, np.arange(4), 50) == 3


def test_by_name() -> None:
    for policy in (LeastUseful, LeastRecentlyUsed):
        assert isinstance(make_policy(policy.name), policy)
