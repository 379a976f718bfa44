"""``launch`` descriptions made from ``ros/system.py``. Only launch files import this module."""

from __future__ import annotations

from typing import Any

from launch.actions import (
    DeclareLaunchArgument,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    SetEnvironmentVariable,
)
from launch.event_handlers import OnProcessExit
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.bringup import typed
from kv_action_router.ros.supervisor import Death
from kv_action_router.ros.system import SYSTEMS, Process
from launch import LaunchContext, LaunchDescription


def describe(robot: str) -> LaunchDescription:
    """Return the launch description of one robot's system."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                name,
                default_value=str(default).lower() if isinstance(default, bool) else default,
                description=info.description,
                choices=_choices(default, info.choices),
            )
            for name, (default, info) in Arguments.parameters().items()
        ]
        + [OpaqueFunction(function=_start, args=[robot])]
    )


def _choices(default: Any, choices: tuple[str, ...]) -> list[str] | None:
    if isinstance(default, bool):
        return ["true", "false"]
    return list(choices) or None


def _start(context: LaunchContext, robot: str) -> list[Any]:
    known = Arguments.parameters()
    arguments = Arguments(
        **{
            name: typed(name, LaunchConfiguration(name).perform(context), default)
            for name, (default, _) in known.items()
        }
    )
    system = SYSTEMS[robot](arguments)
    actions: list[Any] = [
        SetEnvironmentVariable(name, value) for name, value in system.environment.items()
    ]
    actions += [LogInfo(msg=note) for note in system.notes]
    if not arguments.sim and arguments.robot_ip:
        actions.append(_driver(robot, arguments))
    for process in system.processes:
        actions += _node(process)
    return actions


def _node(process: Process) -> list[Any]:
    node = Node(
        package=process.package,
        executable=process.executable,
        namespace=process.namespace,
        output="screen",
        additional_env=dict(process.environment),
        parameters=[*process.parameter_files, dict(process.parameters)],
        remappings=list(process.remaps.items()),
        ros_arguments=["--log-level", process.log_level],
        sigterm_timeout="5",
        sigkill_timeout="5",
    )

    def died(event: Any, context: LaunchContext) -> list[Any]:
        if context.is_shutdown:
            return []
        death = Death(process.name, process.nodes, event.returncode)
        return [LogInfo(msg=f"{death}; {death.consequence}")]

    return [
        node,
        RegisterEventHandler(OnProcessExit(target_action=node, on_exit=died)),
    ]


def _driver(robot: str, arguments: Arguments) -> IncludeLaunchDescription:
    return IncludeLaunchDescription(
        PythonLaunchDescriptionSource(
            PathJoinSubstitution(
                [FindPackageShare("ur_robot_driver"), "launch", "ur_control.launch.py"]
            )
        ),
        launch_arguments={
            "ur_type": robot,
            "robot_ip": arguments.robot_ip,
            "launch_rviz": "false",
            "initial_joint_controller": f"forward_{arguments.controller}_controller",
        }.items(),
    )
