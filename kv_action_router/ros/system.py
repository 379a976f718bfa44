"""The one description of a running system: its processes, parameters, remaps and who may command.

``ros/bringup.py`` and ``launch/*.launch.py`` start the same system from here. Nothing in this file
starts anything, and nothing in it imports ``rclpy`` or ``launch``.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_prefix, get_package_share_directory

from kv_action_router.errors import ConfigError
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.dds_environment import dds_environment
from kv_action_router.ros.domain_id import check_domain_id

PACKAGE = "kv_action_router"
SOFT_STAGES = ("task_key_encoder", "cache_manager", "behavior_synthesizer", "failure_monitor")
INJECTOR = "actuator_injector"
SIMULATION = "simulation"
CAMERA = "camera"  # of the simulation; no priority: who reads the images comes first
# What is nearer to the motor comes first. Two cores that are busy with all of it run into the
# kernel's throttle (95 % of each second): config/small_computer.yaml is for those.
PRIORITIES = {
    INJECTOR: 60,
    SIMULATION: 50,
    "behavior_synthesizer": 30,
    "cache_manager": 20,
    "soft_stages": 20,
    "failure_monitor": 15,  # short rounds: behind the encoder's long ones it would pass for dead
    "task_key_encoder": 10,
}
RECEIVES_OR_SENDS_IMAGES = frozenset((CAMERA, "task_key_encoder"))
HEARTBEAT_PRIORITY = 55  # a busy node is not a dead one


@dataclass(frozen=True)
class Process:
    """One process of a system.

    Attributes:
        name: of the process, and of its node unless it holds several.
        executable: in ``lib/<package>``.
        nodes: names of the nodes that it runs.
        parameters: set for its nodes, after the files.
        parameter_files: YAML files, in order.
        remaps: topic name -> topic name.
        namespace: of its nodes.
        package: that holds the executable.
        environment: set for this process, after the system's.
    """

    name: str
    executable: str
    nodes: tuple[str, ...]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    parameter_files: tuple[str, ...] = ()
    remaps: Mapping[str, str] = field(default_factory=dict)
    namespace: str = ""
    log_level: str = "info"
    package: str = PACKAGE
    environment: Mapping[str, str] = field(default_factory=dict)

    def ros_arguments(self) -> list[str]:
        """Return the arguments behind ``--ros-args``."""
        arguments = ["--log-level", self.log_level]
        if self.namespace:
            arguments += ["-r", f"__ns:=/{self.namespace.strip('/')}"]
        for path in self.parameter_files:
            arguments += ["--params-file", path]
        for name, value in self.parameters.items():
            arguments += ["-p", f"{name}:={_yaml(value)}"]
        for source, target in self.remaps.items():
            arguments += ["-r", f"{source}:={target}"]
        return arguments

    def command(self) -> list[str]:
        """Return the command line that starts the process with this interpreter."""
        path = Path(get_package_prefix(self.package), "lib", self.package, self.executable)
        return [sys.executable, str(path), "--ros-args", *self.ros_arguments()]


@dataclass(frozen=True)
class System:
    """The processes of one robot.

    Attributes:
        name: of the robot model.
        processes: in order of start; they end in reverse order, the injector first of all.
        command_writers: command topic -> the only node that may publish on it.
        environment: set for every process.
        notes: what people should know before they start it.
    """

    name: str
    processes: tuple[Process, ...]
    command_writers: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def with_remaps(self, process: str, remaps: Mapping[str, str]) -> System:
        """Return the system with more remaps for one process.

        Raises:
            ConfigError: naming the process that is not there.
        """
        names = [entry.name for entry in self.processes]
        if process not in names:
            raise ConfigError("process", f"one of {', '.join(names)}", process)
        return self._changed(process, lambda p: {"remaps": {**p.remaps, **remaps}})

    def with_parameters(self, process: str, values: Mapping[str, Any]) -> System:
        """Return the system with more parameters for one process."""
        return self._changed(process, lambda p: {"parameters": {**p.parameters, **values}})

    def _changed(self, process: str, fields: Callable[[Process], dict[str, Any]]) -> System:
        changed = (
            dataclasses.replace(entry, **fields(entry)) if entry.name == process else entry
            for entry in self.processes
        )
        return dataclasses.replace(self, processes=tuple(changed))

    def with_process(self, process: Process) -> System:
        """Return the system with one more process, e.g. a fault proxy."""
        return dataclasses.replace(self, processes=(*self.processes, process))


def ur5e(arguments: Arguments) -> System:
    """Return the system of a UR5e: simulated, or beside its real driver."""
    return _arm("ur5e", arguments)


SYSTEMS = {"ur5e": ur5e}


def _arm(robot: str, arguments: Arguments) -> System:
    share = Path(get_package_share_directory(PACKAGE))
    files = [str(share / "config" / f"{robot}.yaml")]
    if arguments.sim:
        files.append(str(share / "config" / "simulation.yaml"))
    if arguments.cell != "touch":
        files.append(str(share / "config" / f"{arguments.cell}_cell.yaml"))
    if arguments.params_file:
        files.append(str(Path(arguments.params_file).resolve()))
    shared: dict[str, Any] = {"use_sim_time": arguments.use_sim_time}
    without_images = dds_environment(share / "config", images=False)

    def process(name: str, nodes: tuple[str, ...], **values: Any) -> Process:
        return Process(
            name=name,
            executable=name,
            nodes=nodes,
            parameters={
                **shared,
                **({"store_path": arguments.store_path} if arguments.store_path else {}),
                **values,
            },
            parameter_files=tuple(files),
            namespace=arguments.namespace.strip("/"),
            log_level=arguments.log_level,
            environment={} if RECEIVES_OR_SENDS_IMAGES.intersection(nodes) else without_images,
        )

    def stage(name: str, nodes: tuple[str, ...], **values: Any) -> Process:
        priority = PRIORITIES.get(name, 0) if arguments.realtime else 0
        beat = HEARTBEAT_PRIORITY if arguments.realtime else 0
        return process(
            name,
            nodes,
            autostart=True,
            scheduling_priority=priority,
            heartbeat_priority=beat,
            **values,
        )

    processes = []
    if arguments.sim:
        priority = PRIORITIES[SIMULATION] if arguments.realtime else 0
        processes.append(process(SIMULATION, (SIMULATION,), scheduling_priority=priority))
        processes.append(process(CAMERA, (CAMERA,)))
    processes.append(
        stage(
            INJECTOR,
            (INJECTOR,),
            command_interface=arguments.controller,
            dry_run=not arguments.commands_are_sent,
        )
    )
    if arguments.composed:
        processes.append(stage("soft_stages", SOFT_STAGES))
    else:
        processes += [stage(name, (name,)) for name in SOFT_STAGES]
    return System(
        name=robot,
        processes=tuple(processes),
        command_writers={f"{arguments.controller}_controller/commands": INJECTOR},
        environment={
            **dds_environment(share / "config", images=True),
            # software rendering and BLAS must not take the cores that the control loop needs
            "LP_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            # One heap on huge pages instead of Python's many small arenas: after each wake-up the
            # address translations are cold, and there are fewer to fetch (docs/decisions/0015).
            "PYTHONMALLOC": "malloc",
            "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
            "MUJOCO_GL": "egl",
        },
        notes=_notes(arguments),
    )


def _notes(arguments: Arguments) -> tuple[str, ...]:
    notes = [warning] if (warning := check_domain_id()) else []
    if not arguments.sim:
        where = f"at {arguments.robot_ip}" if arguments.robot_ip else "started elsewhere"
        notes.append(f"real robot: its driver must be running ({where})")
    if not arguments.commands_are_sent:
        notes.append("dry run: no command is published; dry_run:=false sends them")
    return tuple(notes)


def _yaml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}'"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_yaml(item) for item in value) + "]"
    return repr(value)
