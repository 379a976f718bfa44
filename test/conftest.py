"""What tests of real nodes and processes share: a DDS domain of their own, processes, waiting.

ROS is imported only by the tests that use it, so that unit tests run where there is none.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from kv_action_router.ros.shared_memory import without_orphans

# The machine may be busy and a failure must be repeatable: no deadline, no random seed.
hypothesis.settings.register_profile("router", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("router")

DOMAIN_LOCKS = Path(tempfile.gettempdir()) / f"kv_action_router_domains_{os.getuid()}"
# DDS derives its ports from the domain; above 101 they run into Linux's ephemeral ports.
DOMAINS = range(1, 102)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first, whatever their folder; then those that start nodes and processes."""
    items.sort(key=lambda item: item.get_closest_marker("dds") is not None)


def _claim_domain() -> tuple[int, int]:
    """Return a domain id that no other test on this machine uses, and the lock that keeps it."""
    DOMAIN_LOCKS.mkdir(exist_ok=True)
    for domain in random.SystemRandom().sample(DOMAINS, len(DOMAINS)):
        lock = os.open(DOMAIN_LOCKS / str(domain), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        return domain, lock
    pytest.fail(f"all {len(DOMAINS)} DDS domains are in use by other tests")


@pytest.fixture
def ros_domain_id(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[int]:
    """A DDS domain of the test's own, set in the environment for it and for its children.

    Only this host is heard. What nodes keep goes into a folder of the test's own. Segments that
    killed processes leave in shared memory are removed.
    """
    domain, lock = _claim_domain()
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    try:
        with without_orphans():
            yield domain
    finally:
        os.close(lock)


@pytest.fixture(scope="session")
def wait_until() -> Callable[..., Any]:
    """`wait_until(predicate, timeout, what)`: bounded waiting for an event."""

    def wait(
        predicate: Callable[[], Any], timeout: float, what: str, interval: float = 0.01
    ) -> Any:
        """Return the predicate's first true value.

        Args:
            predicate: asked every `interval` seconds; also once after the time is over.
            timeout: [s]
            what: completes the failure message "… did not happen within 3 s".
            interval: [s]
        """
        deadline = time.monotonic() + timeout
        while True:
            over = time.monotonic() >= deadline
            value = predicate()
            if value:
                return value
            if over:
                pytest.fail(f"{what} did not happen within {timeout:g} s (last value: {value!r})")
            time.sleep(interval)

    return wait


class Process:
    """A child process whose output is kept in a file.

    Args:
        command: program and arguments.
        environment: variables added to this process's own.
        log: file that takes stdout and stderr together.
    """

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.command = command
        self.log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **environment},
                start_new_session=True,  # the terminal's Ctrl-C goes to pytest, which ends it
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Has it not ended yet?"""
        return self._process.poll() is None

    def output(self) -> str:
        """Everything it has written so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def send(self, number: signal.Signals) -> None:
        """Send a signal, SIGKILL included; no error when the process has ended already."""
        if self.running:
            self._process.send_signal(number)

    def wait(self, timeout: float) -> int:
        """Return the exit code; fail with the output when it runs longer than `timeout` seconds."""
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            pytest.fail(f"{self.command} still runs after {timeout:g} s:\n{self.output()[-4000:]}")

    def stop(self) -> None:
        """Terminate; kill when that takes longer than 5 s. Children in its session die with it."""
        self.send(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5.0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(5.0)


@pytest.fixture
def spawn(ros_domain_id: int, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """`spawn("package.module" or ["program", …], *arguments, **environment)`: a real process.

    A module runs on the interpreter of the tests, which finds ROS and the workspace. Every process
    is ended by its id at the end of the test; when the test fails, its output is in the report.
    """
    processes: list[Process] = []

    def start(program: str | list[str], *arguments: str, **environment: str) -> Process:
        command = [sys.executable, "-m", program] if isinstance(program, str) else list(program)
        process = Process(
            [*command, *arguments], environment, tmp_path / f"process_{len(processes)}.log"
        )
        processes.append(process)
        return process

    yield start
    for process in reversed(processes):
        process.stop()
    for process in processes:
        print(f"--- {' '.join(process.command)}\n{process.output()[-8000:]}")


@pytest.fixture
def ros(ros_domain_id: int) -> Iterator[Any]:
    """An initialized rclpy context in the test's own domain, shut down at the end."""
    rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")
    context = rclpy.Context()
    rclpy.init(context=context, domain_id=ros_domain_id)
    yield context
    context.try_shutdown()


@pytest.fixture(scope="session")
def frames_of() -> Callable[[str], contextlib.AbstractContextManager[Any]]:
    """A context for each cell, by its name, that gives a maker of labeled frames.

    Frames are rendered without a screen; where that cannot be done, the test says so.
    """

    @contextlib.contextmanager
    def make(name: str) -> Iterator[Any]:
        os.environ.setdefault("MUJOCO_GL", "egl")  # before anybody imports mujoco
        from kv_action_router.learning.cells import cell
        from kv_action_router.learning.frames import FrameMaker

        try:
            made = FrameMaker(cell(name))
        except Exception as error:  # no EGL here: said, not hidden
            pytest.skip(f"images cannot be rendered: {error}")
        try:
            yield made
        finally:
            made.close()

    return make
