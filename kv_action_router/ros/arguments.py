"""What a system can be told when it is brought up."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kv_action_router.configuration import Configuration, parameter
from kv_action_router.errors import ConfigError
from kv_action_router.identity import ros_name
from kv_action_router.simulation.config import CELLS

CONTROLLERS = ("effort", "velocity", "position")

_NAMESPACE = re.compile(r"^(/?[A-Za-z][A-Za-z0-9_]*(/[A-Za-z][A-Za-z0-9_]*)*)?$")


@dataclass(frozen=True)
class Arguments(Configuration):
    """Arguments of a bring-up, the same for ``ros2 launch`` and ``ros/bringup.py``."""

    sim: bool = parameter(True, "simulate robot and camera; false = a real robot's driver runs")
    robot_ip: str = parameter(
        "", "address of the real robot; empty = its driver is started elsewhere"
    )
    dry_run: str = parameter(
        "auto",
        "do everything but publish commands; auto = true with a real robot, false in simulation",
        choices=("auto", "true", "false"),
    )
    namespace: str = parameter("", "namespace of all nodes, e.g. robot1")
    params_file: str = parameter("", "YAML file whose parameters come after the robot's own file")
    controller: str = parameter(
        "effort", "command interface of the robot's controller", choices=CONTROLLERS
    )
    store_path: str = parameter(
        "",
        "file that keeps the cache, as the cache manager's parameter of this name; empty = as the "
        "parameter files say, and in the simulation a file of its own",
    )
    cell: str = parameter(
        "touch",
        "work that is set up: a disc to touch, screws to drive, or screws and connectors",
        choices=CELLS,
    )
    composed: bool = parameter(False, "run the four soft stages in one process")
    realtime: bool = parameter(
        True, "ask for real-time scheduling; without permission the nodes say so and run on"
    )
    use_sim_time: bool = parameter(False, "node clocks follow /clock; control never does")
    log_level: str = parameter(
        "info", "least severity that is logged", choices=("debug", "info", "warn", "error", "fatal")
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not _NAMESPACE.match(self.namespace):
            example = "/".join(ros_name(part) for part in self.namespace.split("/") if part)
            raise ConfigError(
                "namespace",
                f"empty or tokens that begin with a letter, joined by '/' (e.g. {example})",
                self.namespace,
            )
        if self.params_file and not Path(self.params_file).is_file():
            raise ConfigError("params_file", "an existing file", self.params_file)

    @property
    def commands_are_sent(self) -> bool:
        """Whether the injector publishes commands."""
        return self.sim if self.dry_run == "auto" else self.dry_run == "false"
