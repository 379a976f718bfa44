"""Processes of a benchmark, started and ended as those of a robot's system are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kv_action_router.errors import RouterError
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import Process, System

_FOLDER = str(Path(__file__).resolve().parents[1])


@dataclass(frozen=True)
class Program(Process):
    """A module of this folder as a process of a system: ``python -m harness.<executable>``.

    Attributes:
        arguments: of its command line.
    """

    arguments: tuple[str, ...] = field(default_factory=tuple)

    def command(self) -> list[str]:
        """Return the command line that starts it with this interpreter."""
        # -P keeps the working folder off the path; the folder of the benchmarks comes back on it
        code = (
            f"import sys, runpy; sys.path.insert(0, {_FOLDER!r}); "
            f"runpy.run_module('harness.{self.executable}', run_name='__main__', alter_sys=True)"
        )
        return [sys.executable, "-P", "-c", code, *self.arguments]


def environment_of(system: System, process: str) -> dict[str, str]:
    """Return what a system sets for one of its processes alone.

    Raises:
        RouterError: it has no such process.
    """
    for entry in system.processes:
        if entry.name == process:
            return dict(entry.environment)
    raise RouterError(f"{system.name} has no process {process!r}")


def run_until_done(
    supervisor: Supervisor,
    programs: Sequence[str],
    timeout: float,
    tick: Callable[[], None] = lambda: None,
    period: float = 0.1,
) -> None:
    """Wait until some programs have ended by themselves with code 0, while all others run on.

    Args:
        supervisor: that has started everything.
        programs: full names of their processes.
        timeout: [s].
        tick: called once a period; may raise to give up.
        period: [s].

    Raises:
        RouterError: something died, or a program did not end in time.
    """
    until = time.monotonic() + timeout
    waited = set(programs)
    while waited:
        for death in supervisor.deaths():
            if death.process not in waited or death.returncode != 0:
                raise RouterError(str(death))
            waited.remove(death.process)
        if time.monotonic() > until:
            raise RouterError(f"{', '.join(sorted(waited))} did not end within {timeout:g} s")
        tick()
        time.sleep(period)
