"""A station: the cell that is set up, and the tasks of one cycle, in order; read from YAML.

``config/stations/station.yaml`` shows all that is needed. A station of one task is one, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kv_action_router.errors import TaskDefinitionError
from kv_action_router.tasks import files
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.fields import refuse_unknown, text
from kv_action_router.tasks.stages import TaskDefinition

_KIND = "stations"  # folder of config


@dataclass(frozen=True)
class Station:
    """What is worked on, and what is done to it in one cycle.

    Attributes:
        name: unique.
        cell: that the simulation sets up.
        tasks: of a cycle, in order; at least one, none twice.

    Raises:
        TaskDefinitionError: no task, or one twice.
    """

    name: str
    cell: str
    tasks: tuple[TaskDefinition, ...]

    def __post_init__(self) -> None:
        names = [task.name for task in self.tasks]
        if not names or len(set(names)) < len(names):
            raise TaskDefinitionError(
                f"station {self.name!r}: tasks must hold at least one, and none twice, got {names}"
            )


def available_stations() -> tuple[str, ...]:
    """Return the names of the stations that come with the package."""
    return files.available(_KIND)


def load_station(name_or_path: str) -> Station:
    """Read a station by its name in ``config/stations``, or by the path of its file.

    Raises:
        TaskDefinitionError: there is none, it or one of its tasks is not usable; the message says
            where and why.
    """
    return _station(*files.read(_KIND, "station", name_or_path))


def _station(data: Any, place: str) -> Station:
    if not isinstance(data, Mapping):
        raise TaskDefinitionError(f"{place}: must be a mapping, got {data!r}")
    refuse_unknown(data, ("name", "cell", "tasks"), place)
    tasks = data.get("tasks")
    if not isinstance(tasks, list) or not all(isinstance(name, str) for name in tasks):
        raise TaskDefinitionError(f"{place}: tasks must be a list of names, got {tasks!r}")
    return Station(
        name=text(data, "name", place),
        cell=text(data, "cell", place),
        tasks=tuple(load_task(name) for name in tasks),
    )
