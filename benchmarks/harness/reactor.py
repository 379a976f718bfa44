"""Does things to a moving robot and notes when the first corrective command went out.

Takes the place of the camera, of the wrench and of the drives' feedback; the rest of the robot is
simulated. Run by ``reaction.py``.
"""

from __future__ import annotations

import argparse
import math
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.node import Node

from harness import events, pictures
from harness.driver import Driver, wait_until_driven
from harness.phases import Phase, period_of
from kv_action_router.contracts import InjectorEvent, InjectorState, Stage
from kv_action_router.errors import RouterError
from kv_action_router.msg import DriveState, ExecutionFeedback, FailureEvent
from kv_action_router.realtime import rest_garbage, schedule_process
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import qos, topics
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.periodic import PeriodicThread
from kv_action_router.ros.process import make_executor
from kv_action_router.ros.sensor_messages import stamp_of, wrench_writer
from kv_action_router.ros.streams import DataLoop, DataPlane
from kv_action_router.ros.task_client import TaskClient
from kv_action_router.ros.wire import FieldReader, FieldWriter
from kv_action_router.srv import InvalidateCache

_PERIOD_S = 0.004  # of the wrench; the drives answer every fifth time
_DRIVES_EVERY = 5
_CAMERA_RATE = 30.0  # [Hz]
_HOLD_S = 0.3  # between two decisions: the arm moves all the time
_QUIET_S = (0.6, 1.0)  # of following before an event
_ANSWER_S = 1.0
_RECOVERY_S = 15.0
_BEGIN_S = 5.0
_ANSWERS = {
    events.WRENCH: InjectorEvent.STOPPED,
    events.WHEEL: InjectorEvent.FAIL_SAFE,
    events.HEAT: InjectorEvent.DRIVE,
}
_NEAR = ("obstacle_near", "obstacle_close")  # detectors


class Sensors:
    """Wrench and drive states, with something wrong in them from :meth:`fault` on.

    Attributes:
        fault_ns: CLOCK_MONOTONIC just before the first faulty sample went out [ns]; 0 = none did.
    """

    def __init__(self, node: Node) -> None:
        model = RobotModel.load("ur5e")
        self._zeros = np.zeros(model.n)
        self._wrench = wrench_writer("tool0")
        zeros = [0.0] * model.n
        names = ("temperature", "current", "rated_current", "duty", "wheel_speed")
        drives = DriveState(
            name=list(model.joint_names), braked=[False] * model.n, **dict.fromkeys(names, zeros)
        )
        stamp = ("header.stamp.sec", "header.stamp.nanosec")
        self._drives = FieldWriter(DriveState, (*stamp, "temperature", "wheel_speed"), drives)
        self._wrenches = BytesPublisher(node, topics.WRENCH)
        self._states = BytesPublisher(node, topics.DRIVE_STATE)
        self._kind = ""
        self._rounds = 0
        self._wheel = 0.0
        self.fault_ns = 0

    def fault(self, kind: str) -> None:
        """Let the next sample of that kind be wrong; empty = all are right again."""
        self.fault_ns = 0
        self._kind = kind

    def send(self) -> None:
        """Publish what is due."""
        self._rounds += 1
        stamp = stamp_of(time.time_ns())
        force = events.FORCE if self._kind == events.WRENCH else 0.0
        self._note(events.WRENCH)
        self._wrenches.publish(self._wrench.write((*stamp, 0.0, 0.0, force, 0.0, 0.0, 0.0)))
        if self._rounds % _DRIVES_EVERY:
            return
        hot = events.HOT if self._kind == events.HEAT else events.COOL
        if self._kind == events.WHEEL and not self.fault_ns:
            self._wheel += events.SPEED_STEP
        for kind in (events.HEAT, events.WHEEL):
            self._note(kind)
        wheels = self._zeros.copy()
        wheels[0] = self._wheel
        temperatures = np.full(len(self._zeros), events.COOL)
        temperatures[0] = hot
        self._states.publish(self._drives.write((*stamp, temperatures, wheels)))

    def _note(self, kind: str) -> None:
        if self._kind == kind and not self.fault_ns:
            self.fault_ns = time.monotonic_ns()


class Answers:
    """Hears what the injector and the monitor say, on a thread of its own."""

    def __init__(self, node: Node) -> None:
        self.state = InjectorState.INACTIVE
        self.followed_since = math.inf
        self.heard = threading.Condition()
        self._events: list[tuple[str, int]] = []  # name, time [ns]
        self._plane = DataPlane(node)
        self._feedback = self._plane.reader(
            topics.EXECUTION_FEEDBACK, profile=qos.log_stream(), raw=True
        )
        names = ("event", "state", "monotonic_ns", "decision.stage_monotonic_ns")
        self._fields = FieldReader(ExecutionFeedback, names)
        self._near_ns = 0
        self._loop = DataLoop(self._plane, (self._feedback,), self._take, _raise, name="answers")
        node.create_subscription(
            FailureEvent, topics.FAILURE_EVENT.name, self._on_failure, qos.event()
        )
        self._loop.start()

    def expect(self) -> None:
        """Forget what was heard."""
        with self.heard:
            self._events.clear()
            self._near_ns = 0

    def wait(self, kind: str, begin_ns: int, timeout: float) -> int | None:
        """Return when the first corrective command went out after an event; None = not in time."""
        name = _ANSWERS[kind].name if kind in _ANSWERS else kind

        def answer() -> int | None:
            return next((at for what, at in self._events if what == name and at > begin_ns), None)

        with self.heard:
            self.heard.wait_for(lambda: answer() is not None, timeout)
            return answer()

    def close(self) -> None:
        """Leave the streams."""
        self._loop.stop()
        self._plane.destroy()

    def _take(self, _: int) -> None:
        while (sample := self._feedback.take()) is not None:
            fields = self._fields.read(sample.message)
            assert fields is not None  # a feedback holds no sequence of messages
            event, state, at_ns, times = fields
            following = state == InjectorState.FOLLOW
            if not following:
                self.followed_since = math.inf
            elif self.followed_since == math.inf:
                self.followed_since = time.monotonic()
            with self.heard:
                if event != InjectorEvent.NONE:
                    self._events.append((InjectorEvent(event).name, at_ns))
                adopted = event == InjectorEvent.CHUNK_ADOPTED
                if adopted and self._near_ns and times[Stage.CHUNK] > self._near_ns:
                    self._events.append((events.HAZARD, times[Stage.COMMAND] or at_ns))
                self.heard.notify_all()

    def _on_failure(self, message: FailureEvent) -> None:
        with self.heard:
            if message.detector in _NEAR and not self._near_ns:
                self._near_ns = message.monotonic_ns


def _raise(error: Exception) -> None:
    raise error


def try_out(
    driver: Driver,
    sensors: Sensors,
    answers: Answers,
    count: int,
    found: dict[str, events.Reactions],
    reset: Callable[[], None],
) -> None:
    """Do each kind of thing ``count`` times; fills ``found`` and ends the driver's phase.

    ``reset`` gives drives that were faulty their values back, which nothing else does.
    """
    chance = random.Random(1)
    plain, boxed = driver.pictures, pictures.render(len(driver.pictures), box=True)
    time.sleep(_BEGIN_S)
    for _ in range(count):
        for kind in events.KINDS:
            quiet = chance.uniform(*_QUIET_S)
            until = time.monotonic() + _RECOVERY_S
            while time.monotonic() - answers.followed_since < quiet and time.monotonic() < until:
                time.sleep(0.01)
            if time.monotonic() >= until:  # it does not move: nothing can be seen
                found[kind].skipped += 1
                continue
            answers.expect()
            if kind == events.HAZARD:
                begin_ns = time.monotonic_ns()  # the next image is up to a period later
                driver.pictures = boxed
            else:
                sensors.fault(kind)
                while not sensors.fault_ns:
                    time.sleep(0.0005)
                begin_ns = sensors.fault_ns
            at_ns = answers.wait(kind, begin_ns, _ANSWER_S)
            driver.pictures = plain
            sensors.fault("")
            if kind in (events.WHEEL, events.HEAT):
                reset()
            if at_ns is None:
                found[kind].missed += 1
            else:
                found[kind].ms.append((at_ns - begin_ns) / 1e6)
    driver.finish()


def main() -> int:
    """Run the trials; write the reactions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--priority", type=int, default=0)
    options = parser.parse_args()
    schedule_process(options.priority)
    rclpy.init(args=[])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    node = rclpy.create_node("reactor")
    executor = make_executor()
    executor.add_node(node)
    client = TaskClient(node, executor)
    sensors = Sensors(node)
    sending = PeriodicThread(_PERIOD_S, sensors.send, _raise, name="sensors")
    sending.start()
    driver, answers = Driver(node), Answers(node)
    wait_until_driven(node, client, driver)
    rest_garbage()
    found = {kind: events.Reactions() for kind in events.KINDS}
    invalidation = node.create_client(InvalidateCache, topics.INVALIDATE.name)
    request = InvalidateCache.Request(
        scope=InvalidateCache.Request.SCOPE_LAYER, layer="execution", reason="benchmark"
    )

    def reset() -> None:
        invalidation.call_async(request)

    arguments: Any = (driver, sensors, answers, options.count, found, reset)
    trials = threading.Thread(target=try_out, args=arguments, daemon=True)
    trials.start()
    each = _QUIET_S[1] + _ANSWER_S + _RECOVERY_S
    longest = int(options.count * len(events.KINDS) * each / _HOLD_S) + 1
    phase = Phase("moving", "hit", longest, period_ns=period_of(_CAMERA_RATE), hold_s=_HOLD_S)
    record = driver.run(phase, options.output.parent, client)
    trials.join(1.0)
    events.write(options.output, found)
    sending.stop()
    answers.close()
    driver.close()
    rclpy.try_shutdown()
    if record.trouble:
        raise RouterError(record.trouble)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
