"""Definitions of the stages under way, read when a task begins and again when its file changed."""

from __future__ import annotations

from collections.abc import Callable

from kv_action_router.errors import RouterError
from kv_action_router.tasks.definition import load_task, task_folders
from kv_action_router.tasks.stages import StageDefinition, TaskDefinition


class StageCatalog:
    """Finds stages by task and name.

    Invariant: an unknown or broken definition is told once for each version of its file, and is
    then simply not there.
    """

    def __init__(self, on_error: Callable[[RouterError], None]) -> None:
        """Start empty.

        Args:
            on_error: receives what reading a definition raised.
        """
        self._on_error = on_error
        self._tasks: dict[str, tuple[int, TaskDefinition | None]] = {}

    def find(self, task: str, stage: str) -> StageDefinition | None:
        """Return a stage's definition, None = not known."""
        definition = self._definition(task)
        if definition is None:
            return None
        for candidate in definition.stages:
            if candidate.name == stage:
                return candidate
        return None

    def _definition(self, task: str) -> TaskDefinition | None:
        version = _version(task)
        known = self._tasks.get(task)
        if known is not None and known[0] == version:
            return known[1]
        definition = None
        try:
            definition = load_task(task)
        except RouterError as error:
            self._on_error(error)
        self._tasks[task] = (version, definition)
        return definition


def _version(task: str) -> int:
    """Return the modification time of the file that a task is read from [ns]; 0 = none."""
    for folder in task_folders():
        try:
            return (folder / f"{task}.yaml").stat().st_mtime_ns
        except OSError:
            continue
    return 0
