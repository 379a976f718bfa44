"""Starts the processes of systems, names the ones that die, and ends them in order.

A process that dies does not take the others with it: the injector brings the robot to rest by
itself
(it watches all heartbeats), the supervisor names what died, and the rest stays up to be looked at.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kv_action_router.ros.system import INJECTOR, Process, System

_PR_SET_PDEATHSIG = 1
_END_S = 5.0


@dataclass(frozen=True)
class Death:
    """A process that ended without having been asked to."""

    process: str
    nodes: tuple[str, ...]
    returncode: int

    def __str__(self) -> str:
        if self.returncode < 0:
            cause = f"killed by {signal.Signals(-self.returncode).name}"
        else:
            cause = f"ended with code {self.returncode}"
        return f"{self.process} died: {cause} (nodes: {', '.join(self.nodes)})"

    @property
    def consequence(self) -> str:
        """What brings the robot to rest now, and that the rest of the system runs on."""
        if INJECTOR in self.nodes:
            return "the drives brake by their own command timeout, the others stay up"
        return "the injector brings the robot to rest, the others stay up"


class Supervisor:
    """Runs the processes of one or several systems.

    Invariant: every process that :meth:`start` started has ended when :meth:`stop` returns.
    """

    def __init__(self, systems: Sequence[System], log_folder: Path | None = None) -> None:
        """Prepare; nothing is started.

        Args:
            systems: one a robot; two of them need two namespaces.
            log_folder: where each process's output goes; None = this terminal.
        """
        self._systems = tuple(systems)
        self._log_folder = log_folder
        self._running: dict[str, tuple[Process, subprocess.Popen[bytes]]] = {}
        self._logs: list[IO[bytes]] = []

    @property
    def pids(self) -> dict[str, int]:
        """Process name (with its namespace) -> process id of what is running."""
        return {
            name: popen.pid for name, (_, popen) in self._running.items() if popen.poll() is None
        }

    def start(self) -> None:
        """Start every process."""
        for system in self._systems:
            for process in system.processes:
                self.start_process(system, process)

    def start_process(self, system: System, process: Process) -> None:
        """Start one process, e.g. again after its death."""
        name = _full_name(process)
        output = self._output(name)
        self._running[name] = (
            process,
            subprocess.Popen(
                process.command(),
                env={**os.environ, **system.environment, **process.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT if output else None,
                start_new_session=True,  # the terminal's Ctrl-C goes to the supervisor alone
                preexec_fn=_end_with_parent,
            ),
        )

    def deaths(self) -> list[Death]:
        """Return the processes that have died since the last call."""
        dead = []
        for name, (process, popen) in list(self._running.items()):
            code = popen.poll()
            if code is not None:
                del self._running[name]
                dead.append(Death(name, process.nodes, code))
        return dead

    def stop(self, say: Callable[[str], None] = lambda _: None) -> bool:
        """End everything, the injector first so that its stop goes out while the rest still runs.

        Returns:
            Whether every process ended by itself with code 0.
        """
        order = sorted(self._running.items(), key=lambda item: item[1][0].name != INJECTOR)
        clean = True
        for group in (order[:1], order[1:]) if order else ():
            for _, (_, popen) in group:
                if popen.poll() is None:
                    popen.send_signal(signal.SIGINT)
            until = time.monotonic() + _END_S
            for name, (_, popen) in group:
                try:
                    code = popen.wait(timeout=max(0.0, until - time.monotonic()))
                    clean &= code == 0
                    if code != 0:
                        say(f"{name} ended with code {code}")
                except subprocess.TimeoutExpired:
                    say(f"{name} did not end within {_END_S} s: killed")
                    popen.kill()
                    popen.wait()
                    clean = False
        self._running.clear()
        for log in self._logs:
            log.close()
        self._logs.clear()
        return clean

    def _output(self, name: str) -> IO[bytes] | None:
        if self._log_folder is None:
            return None
        self._log_folder.mkdir(parents=True, exist_ok=True)
        log = (self._log_folder / f"{name.replace('/', '_')}.log").open("ab")
        self._logs.append(log)
        return log


def _full_name(process: Process) -> str:
    return f"{process.namespace}/{process.name}" if process.namespace else process.name


def _end_with_parent() -> None:
    # A supervisor that is killed must not leave a robot under command behind.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
