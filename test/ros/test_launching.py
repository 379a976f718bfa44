"""The launch file's description, where ROS 2's launch packages are installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kv_action_router.errors import ConfigError
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.system import SYSTEMS

pytest.importorskip("launch_ros", reason="ROS 2's launch packages are not on PyPI: source a ROS 2")

Perform = Callable[..., list[Any]]


@pytest.fixture
def described() -> Any:
    from kv_action_router.ros.launching import describe

    return describe("ur5e")


@pytest.fixture
def perform(described: Any) -> Perform:
    """`perform(name="value")`: the actions that follow, as with `name:=value`."""
    from launch import LaunchContext

    def perform(**arguments: str) -> list[Any]:
        context = LaunchContext()
        context.launch_configurations.update(arguments)
        actions: list[Any] = []
        for entity in described.entities:
            actions += entity.execute(context) or []
        return actions

    return perform


def executables(actions: list[Any]) -> list[str]:
    from launch_ros.actions import Node

    return [action.node_executable for action in actions if isinstance(action, Node)]


def test_every_argument_is_declared_with_default_and_description(described: Any) -> None:
    declared = {argument.name: argument for argument in described.get_launch_arguments()}
    assert list(declared) == list(Arguments.parameters())
    for name, (_, info) in Arguments.parameters().items():
        assert declared[name].description.startswith(info.description)


@pytest.mark.parametrize(
    "arguments", [{}, {"sim": "false"}, {"composed": "true", "namespace": "robot1"}]
)
def test_starts_the_processes_of_the_same_system(
    perform: Perform, arguments: dict[str, str]
) -> None:
    values = {n: v == "true" if v in ("true", "false") else v for n, v in arguments.items()}
    system = SYSTEMS["ur5e"](Arguments(**values))
    assert executables(perform(**arguments)) == [p.executable for p in system.processes]


def test_notes_are_logged(perform: Perform) -> None:
    from launch.actions import LogInfo

    notes = [action for action in perform(sim="false") if isinstance(action, LogInfo)]
    assert len(notes) == 2


def test_unknown_choice_names_the_choices(perform: Perform) -> None:
    with pytest.raises(RuntimeError, match=r"controller.*effort.*velocity.*position"):
        perform(controller="torque")


def test_missing_parameter_file_is_named(perform: Perform) -> None:
    with pytest.raises(ConfigError, match=r"params_file must be an existing file.*missing\.yaml"):
        perform(params_file="missing.yaml")
