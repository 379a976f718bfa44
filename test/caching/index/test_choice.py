"""Which index a configuration gets, and what is said when its library is missing."""

from __future__ import annotations

import importlib.util

import pytest

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.index.choice import EXACT_LIMIT, INSTALL, index_of
from kv_action_router.caching.index.exact import ExactIndex
from kv_action_router.caching.index.vector import VectorIndex
from kv_action_router.errors import ConfigError


@pytest.mark.parametrize(
    ("kind", "capacity", "expected"),
    [
        ("auto", 1000, ExactIndex),
        ("auto", EXACT_LIMIT, ExactIndex),
        ("auto", EXACT_LIMIT + 1, VectorIndex),
        ("exact", 1_000_000, ExactIndex),
        ("vector", 10, VectorIndex),
    ],
)
def test_capacity_decides_unless_the_configuration_does(
    kind: str, capacity: int, expected: type
) -> None:
    make = index_of(CachingConfig(index=kind, capacity=capacity))
    assert isinstance(make(8), expected)


@pytest.mark.parametrize(
    ("changes", "field"), [({"capacity": 200_000}, "capacity"), ({"index": "vector"}, "index")]
)
def test_a_missing_library_is_named_with_what_installs_it(
    changes: dict, field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=f"^{field} must be .*{INSTALL}"):
        index_of(CachingConfig(**changes))
    assert index_of(CachingConfig()) is ExactIndex
