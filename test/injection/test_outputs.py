"""Output adapters say where each joint's value goes, and prepare the rest (K01, K45)."""

from __future__ import annotations

from array import array
from types import SimpleNamespace
from typing import Any

import pytest

from kv_action_router.errors import ConfigError, OutputError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.outputs import make_output

JOINTS = ("a", "b")


def new(kind: str) -> Any:
    name = kind.rpartition("/")[2]
    if name == "Float64MultiArray":
        return SimpleNamespace(layout=SimpleNamespace(dim=[]), data=array("d"))
    if name == "JointTrajectoryPoint":
        time = SimpleNamespace(sec=0, nanosec=0)
        return SimpleNamespace(positions=array("d"), velocities=array("d"), time_from_start=time)
    return SimpleNamespace()


def prepared(**parameters: Any) -> tuple[Any, Any]:
    output = make_output(InjectionConfig(**parameters), JOINTS)
    message = new(output.message_type)
    output.prepare(message, new)
    return output, message


@pytest.mark.parametrize("interface", ["effort", "velocity", "position"])
def test_forward_commands_are_labeled_with_the_joints(interface: str) -> None:
    output, message = prepared(command_interface=interface)
    assert output.topic == f"{interface}_controller/commands"
    assert [dimension.label for dimension in message.layout.dim] == ["a", "b"]
    assert output.fields == ("data",)
    assert message.data.tolist() == [0.0, 0.0]
    assert not output.has_own_timeout


def test_trajectory_has_one_point_two_periods_ahead() -> None:
    output, message = prepared(output="joint_trajectory", command_interface="position")
    assert message.joint_names == ["a", "b"]
    assert output.fields == ("points[0].positions",)
    assert message.points[0].positions.tolist() == [0.0, 0.0]
    assert message.points[0].time_from_start.nanosec == 4_000_000
    assert output.has_own_timeout
    output, message = prepared(output="joint_trajectory", command_interface="velocity")
    assert output.fields == ("points[0].velocities",)
    assert message.points[0].velocities.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("output_name", ["twist", "twist_stamped"])
def test_base_velocity_with_and_without_a_header(output_name: str) -> None:
    output, _ = prepared(output=output_name, command_interface="velocity")
    assert output.stamped == (output_name == "twist_stamped")
    path = "twist." if output.stamped else ""
    assert output.fields == (f"{path}linear.x", f"{path}angular.z")
    assert output.topic == "cmd_vel"


def test_topic_can_be_chosen() -> None:
    output, _ = prepared(output_topic="arm/commands")
    assert output.topic == "arm/commands"


def test_an_output_behind_which_nothing_brakes_is_refused() -> None:
    with pytest.raises(OutputError, match="drive_timeout must be above 0 s"):
        make_output(InjectionConfig(drive_timeout=0.0), JOINTS)
    config = InjectionConfig(
        drive_timeout=0.0, output="joint_trajectory", command_interface="position"
    )
    assert make_output(config, JOINTS).has_own_timeout


def test_twist_needs_two_joints() -> None:
    config = InjectionConfig(output="twist", command_interface="velocity")
    with pytest.raises(OutputError, match="two joints"):
        make_output(config, ("a", "b", "c"))


@pytest.mark.parametrize("output", ["twist", "twist_stamped", "joint_trajectory"])
def test_effort_fits_forward_commands_only(output: str) -> None:
    with pytest.raises(ConfigError, match="command_interface must be velocity or position"):
        InjectionConfig(output=output)
