"""The physics loop: a thread that steps the plant in real time and hands out what is due."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from kv_action_router import realtime
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.connector import Connector
from kv_action_router.simulation.pacing import Pace, Rate, RealTimeFactor
from kv_action_router.simulation.plant import Plant
from kv_action_router.simulation.screw import Screw
from kv_action_router.simulation.truth import Contact

_PACE_STEPS = 100  # physics steps between two looks at the real-time factor


class Outputs(Protocol):
    """Where the loop's samples go. All calls come from the loop's thread and must be quick."""

    def poll_commands(self, now_ns: int) -> None:
        """Give newly arrived commands to the drives."""

    def joints(self, plant: Plant, stamp_ns: int) -> None:
        """Joint states are due."""

    def wrench(self, stamp_ns: int) -> None:
        """The wrench is due."""

    def imu(self, stamp_ns: int) -> None:
        """The IMU is due."""

    def drives(self, plant: Plant, stamp_ns: int) -> None:
        """Drive states are due; temperatures are up to date."""

    def scene(self, plant: Plant, stamp_ns: int) -> None:
        """An image is due."""

    def contact(self, contact: Contact, factor: float, stamp_ns: int) -> None:
        """The robot has touched the target."""

    def plug(self, connector: Connector, factor: float, stamp_ns: int) -> None:
        """Take how a plug stands in its socket, and simulated over real time."""

    def screw(self, screw: Screw, factor: float, stamp_ns: int) -> None:
        """Take a screw that the tool has let go of, and the real-time factor."""

    def unscheduled(self, refusal: str) -> None:
        """The wanted real-time priority was not permitted; the loop runs on without it."""

    def behind(self, factor: float, lost: float) -> None:
        """Simulation is slower than real time by ``factor``; ``lost`` [s] since the start."""

    def stamp_ns(self) -> int:
        """Return the present time for header stamps [ns]."""


class PhysicsLoop:
    """Steps the plant at absolute deadlines.

    Invariant: between :meth:`start` and :meth:`stop` only the loop's thread touches the plant;
    others ask through :meth:`call`.
    """

    def __init__(
        self,
        plant: Plant,
        config: SimulationConfig,
        outputs: Outputs,
        on_error: Callable[[Exception], None],
    ) -> None:
        """Prepare; nothing runs before :meth:`start`."""
        step = config.step
        fastest = max(config.joint_state_rate, config.wrench_rate, config.imu_rate)
        self._plant = plant
        self._outputs = outputs
        self._on_error = on_error
        self._substeps = max(1, int(1.0 / (fastest * step) + 1e-9))
        self.period_ns = round(self._substeps * step * 1e9)  # of a tick
        self._catch_up_ns = int(config.catch_up * 1e9)
        self._warn_below = config.warn_below
        self._priority = config.scheduling_priority
        self._joint_rate = Rate(config.joint_state_rate, step)
        self._wrench_rate = Rate(config.wrench_rate, step)
        self._imu_rate = Rate(config.imu_rate, step)
        self._drive_rate = Rate(config.drive_state_rate, step)
        self._camera_rate = Rate(config.camera_rate, step) if config.camera_rate else None
        self._real_time = RealTimeFactor()
        self._next_pace = 0
        self._drives_stopped = plant.drives.stopped
        self.factor = 1.0  # simulated over real time, over the last second
        self._calls: deque[Callable[[], None]] = deque()
        self._running = False
        self._thread = threading.Thread(target=self._run, name="physics", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._running = True
        self._thread.start()

    def stop(self) -> None:
        """Stop and join the thread."""
        self._running = False
        if self._thread.is_alive():
            self._thread.join()

    def call(self, function: Callable[[], None], timeout: float = 1.0) -> bool:
        """Run a function on the loop's thread before its next step; return whether it has run."""
        done = threading.Event()
        given_up = False

        def run() -> None:
            if given_up:
                return
            try:
                function()
            finally:
                done.set()

        self._calls.append(run)
        given_up = not done.wait(timeout)
        return not given_up

    def _run(self) -> None:
        if self._priority > 0:
            # A robot is hardware.
            refusal = realtime.schedule_process(self._priority)
            realtime.schedule_thread(self._priority + 1)
            if refusal:
                self._outputs.unscheduled(refusal)
        pace = Pace(self.period_ns, self._catch_up_ns, time.monotonic_ns())
        while self._running:
            wait = pace.due_ns - time.monotonic_ns()
            if wait > 0:
                time.sleep(wait * 1e-9)
            now = time.monotonic_ns()
            try:
                self._tick(now, pace)
            except Exception as error:  # a driver reports and lives on
                self._on_error(error)
            pace.advance(now)

    def _tick(self, now_ns: int, pace: Pace) -> None:
        outputs, plant = self._outputs, self._plant
        while self._calls:
            self._calls.popleft()()
        outputs.poll_commands(now_ns)
        contact = None
        for _ in range(self._substeps):
            contact = plant.step(now_ns) or contact
        steps = plant.steps
        stamp = outputs.stamp_ns()
        if self._joint_rate.due(steps):
            outputs.joints(plant, stamp)
        if self._wrench_rate.due(steps):
            outputs.wrench(stamp)
        if self._imu_rate.due(steps):
            outputs.imu(stamp)
        if contact is not None:
            outputs.contact(contact, self.factor, stamp)
        if plant.screw is not None and plant.screw.let_go:
            plant.screw.let_go = False
            outputs.screw(plant.screw, self.factor, stamp)
        if plant.connector is not None and plant.connector.let_go:
            plant.connector.let_go = False
            outputs.plug(plant.connector, self.factor, stamp)
        if self._camera_rate is not None and self._camera_rate.due(steps):
            outputs.scene(plant, stamp)
        stopped = plant.drives.stopped
        if self._drive_rate.due(steps) or stopped is not self._drives_stopped:
            self._drives_stopped = stopped  # whoever commands them must know at once
            plant.drives.warm()
            outputs.drives(plant, stamp)
        if steps >= self._next_pace:
            self._next_pace = steps + _PACE_STEPS
            self.factor = self._real_time.update(now_ns, plant.time)
            if self.factor < self._warn_below:
                outputs.behind(self.factor, pace.lost_ns * 1e-9)
