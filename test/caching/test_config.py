"""Parameters: bad ones are refused with field, limit and value."""

from __future__ import annotations

import pytest

from kv_action_router.caching.config import CachingConfig
from kv_action_router.errors import ConfigError


def test_defaults_are_good() -> None:
    config = CachingConfig()
    assert config.own_domain == config.robot  # nobody has filled the identity in
    assert CachingConfig(robot_id="7bot").own_domain == "7bot"
    assert CachingConfig(domain="cell_3").own_domain == "cell_3"
    assert config.threshold_of("corridor") == 0.85
    assert config.threshold_of("warehouse") == 0.72
    assert config.threshold_of("table") == config.threshold == 0.85


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"threshold": 1.1}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"scene_thresholds": [0.8]}, "scene_thresholds"),
        ({"scene_thresholds": [0.8, 7.0]}, "scene_thresholds"),
        ({"scene_names": ["a", "a"]}, "scene_names"),
        ({"robot_id": "a b"}, "robot_id"),
        ({"domain": "x" * 65}, "domain"),
        ({"capacity": 0}, "capacity"),
        ({"capacity": 1.5}, "capacity"),
        ({"eviction": "random"}, "eviction"),
        ({"start_distance": -0.1}, "start_distance"),
        ({"failure_limit": 0}, "failure_limit"),
    ],
)
def test_refuses_bad_values(changes: dict, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        CachingConfig(**changes)


def test_takes_integers_for_floats() -> None:
    assert CachingConfig(threshold=1, scene_thresholds=[1, 0]).scene_thresholds == (1.0, 0.0)
