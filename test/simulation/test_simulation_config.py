"""Parameters are refused by field, limit and value."""

from __future__ import annotations

import pytest

from kv_action_router.errors import ConfigError
from kv_action_router.simulation.config import SimulationConfig


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("imu_rate", 99),
        ("imu_rate", 1001),
        ("physics_step", 0.01),
        ("camera_position", (0.1, 0.2)),
        ("camera_orientation", (0.0, 0.0, 0.0, 0.5)),
        ("camera_orientation", (0.0, 0.0, 1.0)),
        ("target_x", (0.5, 0.4)),
        ("target_y", (0.1,)),
        ("depth_encoding", "32FC3"),
        ("command_timeout", 0.0),
        ("seed", -1),
    ],
)
def test_bad_value_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(ConfigError) as refused:
        SimulationConfig(**{field: value})
    assert refused.value.field == field


def test_physics_step_is_short_enough_for_the_fastest_stream() -> None:
    assert SimulationConfig().step == 0.002
    assert SimulationConfig(imu_rate=1000).step == 0.001
    assert SimulationConfig(physics_step=0.001).step == 0.001
