"""The file of execution values: every slot, by name, or an error that names it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from kv_action_router.contracts import SLOT, SLOT_NAMES
from kv_action_router.errors import ConfigError
from kv_action_router.robots.execution_values import SLOT_BOUNDS, load_execution_value
from kv_action_router.robots.model import RobotModel

SLOTS = {name: max(low, min(high, 1.0)) for name, (low, high) in SLOT_BOUNDS.items()}


def write(folder: Path, content: object) -> str:
    path = folder / "values.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return str(path)


def test_packaged_values_fit_the_robot() -> None:
    value = load_execution_value("ur5e")
    model = RobotModel.load("ur5e")
    assert value.drives == model.joint_names
    assert value.slots.shape == (6, 32)
    for slot, limit in (
        ("stage_effort_limit", model.effort_limit),
        ("protective_effort_limit", model.effort_limit),
        ("acceleration_limit", model.acceleration_limit),
        ("protective_velocity_limit", model.velocity_limit),
    ):
        assert (value.slots[:, SLOT[slot]] <= limit + 1e-4).all(), slot


def test_prefix_and_common_slots(tmp_path: Path) -> None:
    common = {name: SLOTS[name] for name in SLOT_NAMES[:-1]}
    drives = {"x": {"acceleration_limit": 3}, "y": {"acceleration_limit": 4.0}}
    path = write(tmp_path, {"own": {"common": common, "drives": drives}})
    value = load_execution_value(path, prefix="left_")
    assert value.drives == ("left_x", "left_y")
    assert value.slots[:, -1].tolist() == [3.0, 4.0]
    assert (value.version, value.base_version) == (1, 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"integral_gain": None}, "x.integral_gain must be a number"),
        ({"integral_gain": "much"}, "x.integral_gain must be a number"),
        ({"integral_gain": float("nan")}, "x.integral_gain must be finite"),
        ({"derating": 1.5}, "x.derating must be finite, 0 to 1"),
        ({"spring": 1.0}, "x.spring must be one of"),
        ({"stage_effort_limit": 0.0}, "x.stage_effort_limit must be finite, 0.01"),
    ],
)
def test_what_does_not_fit_is_named(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = write(tmp_path, {"own": {"drives": {"x": {**SLOTS, **change}}}})
    with pytest.raises(ConfigError) as error:
        load_execution_value(path)
    assert message in str(error.value)


def test_unknown_robot_or_file_is_named() -> None:
    with pytest.raises(ConfigError, match="must be one of ur5e"):
        load_execution_value("ur99")
    with pytest.raises(ConfigError, match="nowhere"):
        load_execution_value("/nowhere.yaml")
