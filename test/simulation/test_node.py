"""The node ``simulation`` as a real process over DDS."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here")

from kv_action_router.srv import PlaceTarget  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from std_msgs.msg import Bool, Float64MultiArray, MultiArrayDimension  # noqa: E402

from kv_action_router.robots.model import RobotModel  # noqa: E402
from kv_action_router.ros import topics  # noqa: E402

pytestmark = pytest.mark.dds

DOMAIN = 1 + os.getpid() % 100
PATIENCE_S = 45.0  # the machine may be busy with other tests
SOURCE = Path(__file__).parents[2]
SENSORS = (
    topics.JOINT_STATES,
    topics.WRENCH,
    topics.IMU,
    topics.DRIVE_STATE,
    topics.COLOR_IMAGE,
    topics.DEPTH_IMAGE,
    topics.CAMERA_INFO,
)


class Simulation:
    """The node's process and a client beside it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        environment = os.environ | {
            "ROS_DOMAIN_ID": str(DOMAIN),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
            "PYTHONPATH": os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]),
        }
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "kv_action_router.simulation.node"],
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=DOMAIN)
        self.node = rclpy.create_node("client", context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.received: dict[str, list[Any]] = {topic.name: [] for topic in SENSORS}
        deep = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
        for topic in SENSORS:
            self._listen(topic, deep)
        self.received[topics.SIMULATION_TRUTH.name] = []
        self._listen(topics.SIMULATION_TRUTH, topics.SIMULATION_TRUTH.profile())
        self.publishers = {
            topic.name: self.node.create_publisher(topic.type, topic.name, topic.profile())
            for topic in (topics.EFFORT_COMMAND, topics.VELOCITY_COMMAND, topics.HORN)
        }
        self.placer = self.node.create_client(topics.PLACE_TARGET.type, topics.PLACE_TARGET.name)

    def wait_until_connected(self) -> None:
        """Spin until everything has been discovered and every sensor has spoken."""
        self.wait_for(
            lambda: (
                self.placer.service_is_ready()
                and all(p.get_subscription_count() for p in self.publishers.values())
                and all(self.received[topic.name] for topic in SENSORS)
            )
        )

    def _listen(self, topic: topics.Topic, profile: Any) -> None:
        store = self.received[topic.name]
        self.node.create_subscription(topic.type, topic.name, store.append, profile)

    def newest(self, topic: topics.Topic) -> Any:
        """Spin until a message comes that was not there before; return it."""
        store = self.received[topic.name]
        store.clear()
        self.wait_for(lambda: bool(store))
        return store[-1]

    def wait_for(
        self, condition: Callable[[], bool], each: Callable[[], None] | None = None
    ) -> None:
        """Spin until a condition holds; ``each`` is called about every 10 ms."""
        until = time.monotonic() + PATIENCE_S
        due = 0.0
        while not condition():
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < until, f"nothing within {PATIENCE_S} s:\n{self.log()}"
            if each is not None and time.monotonic() >= due:
                due = time.monotonic() + 0.010
                each()
            self.executor.spin_once(timeout_sec=0.005)

    def place(self, random: bool = False, **position: float) -> Any:
        """Call ``place_target``."""
        request = PlaceTarget.Request(random=random)
        for axis, value in position.items():
            setattr(request.pose.position, axis, value)
        future = self.placer.call_async(request)
        self.wait_for(future.done)
        return future.result()

    def command(self, topic: topics.Topic, values: np.ndarray, names: tuple[str, ...] = ()) -> None:
        """Publish one command."""
        message = Float64MultiArray(data=[float(value) for value in values])
        message.layout.dim = [MultiArrayDimension(label=name) for name in names]
        self.publishers[topic.name].publish(message)

    def log(self) -> str:
        """Return what the node has printed."""
        return self._log.read_text(errors="replace")

    def close(self) -> None:
        """End the process if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10.0)
        self.executor.shutdown()
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulation]:
    one = Simulation(tmp_path_factory.mktemp("simulation") / "log")
    try:
        one.wait_until_connected()
        yield one
    finally:
        one.close()


@pytest.fixture(scope="module")
def gravity() -> np.ndarray:
    robot = RobotModel.load("ur5e")
    return robot.gravity_torque(np.array(robot.home)).copy()


def stamp(message: Any) -> float:
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec


def test_streams_come_at_their_rates(simulation: Simulation) -> None:
    for store in simulation.received.values():
        store.clear()
    begin = time.monotonic()
    simulation.wait_for(lambda: time.monotonic() - begin > 2.0)
    rates = {
        topic.name: np.median(1.0 / np.diff([stamp(m) for m in simulation.received[topic.name]]))
        for topic in SENSORS
    }
    # Medians of the stamps' differences: a busy machine may lose samples, but not most of them.
    assert rates["joint_states"] == pytest.approx(500.0, rel=0.1)
    assert rates["wrench"] == pytest.approx(500.0, rel=0.1)
    assert rates["imu"] == pytest.approx(200.0, rel=0.35)  # every second or third tick
    assert rates["drive_state"] == pytest.approx(50.0, rel=0.1)
    assert rates[topics.COLOR_IMAGE.name] == pytest.approx(30.0, rel=0.1)


def test_joint_states_name_their_joints_and_units(simulation: Simulation) -> None:
    message = simulation.newest(topics.JOINT_STATES)
    robot = RobotModel.load("ur5e")
    assert tuple(message.name) == robot.joint_names
    np.testing.assert_allclose(message.position, robot.home, atol=1e-2)
    assert len(message.velocity) == len(message.effort) == robot.n
    assert message.header.frame_id == "base_link"
    imu = simulation.newest(topics.IMU)
    assert imu.header.frame_id == "tool0"
    acceleration = imu.linear_acceleration
    assert np.hypot(np.hypot(acceleration.x, acceleration.y), acceleration.z) == pytest.approx(
        9.81, abs=0.5
    )


def test_images_are_a_pair_and_calibrated(simulation: Simulation) -> None:
    color, depth, info = (
        simulation.received[topic.name]
        for topic in (topics.COLOR_IMAGE, topics.DEPTH_IMAGE, topics.CAMERA_INFO)
    )
    for store in (color, depth, info):
        store.clear()
    simulation.wait_for(
        lambda: {stamp(m) for m in color} & {stamp(m) for m in depth} & {stamp(m) for m in info}
    )
    common = ({stamp(m) for m in color} & {stamp(m) for m in depth}).pop()
    image = next(m for m in color if stamp(m) == common)
    ranges = next(m for m in depth if stamp(m) == common)
    assert (image.encoding, image.width, image.height, image.step) == ("rgb8", 320, 240, 960)
    assert (ranges.encoding, ranges.width, ranges.height, ranges.step) == ("16UC1", 320, 240, 640)
    assert image.header.frame_id == ranges.header.frame_id == "camera_color_optical_frame"
    pixels = np.frombuffer(image.data, np.uint8).reshape(240, 320, 3).astype(int)
    magenta = (pixels[..., 0] > 2 * pixels[..., 1] + 40) & (pixels[..., 2] > 2 * pixels[..., 1])
    assert magenta.sum() > 200
    millimeters = np.frombuffer(ranges.data, np.uint16).reshape(240, 320)
    assert 300 < np.median(millimeters[magenta]) < 600
    k = np.array(info[-1].k).reshape(3, 3)
    assert k[0, 0] == k[1, 1] > 100.0
    assert k[0, 2] == 159.5
    assert (info[-1].width, info[-1].height) == (320, 240)


def test_target_is_placed_where_it_is_asked_for(simulation: Simulation) -> None:
    truth = simulation.received[topics.SIMULATION_TRUTH.name]
    truth.clear()
    before = simulation.place(random=True)
    assert before.success, before.message
    answer = simulation.place(x=0.5, y=-0.1, z=0.010)
    assert answer.success, answer.message
    assert answer.sequence == before.sequence + 1
    assert (answer.pose.position.x, answer.pose.position.y) == (0.5, -0.1)
    simulation.wait_for(lambda: len(truth) >= 2)
    assert truth[-1].event == "placed"
    assert truth[-1].target.position.x == 0.5
    assert truth[-1].sequence == answer.sequence
    assert np.isnan(truth[-1].error)


def test_bad_places_are_refused_with_a_reason(simulation: Simulation) -> None:
    placed = simulation.place(random=True)
    for position, reason in (
        ({"x": 2.0}, "pose.position.x must be 0.36 to 0.56 m, got 2.0"),
        ({"x": 0.5, "z": 0.3}, "pose.position.z"),
        ({"x": float("nan")}, "pose.position must be finite"),
    ):
        answer = simulation.place(**position)
        assert not answer.success
        assert reason in answer.message
        assert answer.sequence == placed.sequence
        assert answer.pose.position.x == pytest.approx(placed.pose.position.x)


def test_drives_release_on_command_and_brake_after_silence(
    simulation: Simulation, gravity: np.ndarray
) -> None:
    assert all(simulation.newest(topics.DRIVE_STATE).braked)
    states = simulation.received[topics.DRIVE_STATE.name]
    simulation.wait_for(
        lambda: not any(states[-1].braked),
        each=lambda: simulation.command(topics.EFFORT_COMMAND, gravity),
    )
    silent_since = time.monotonic()
    simulation.wait_for(lambda: all(states[-1].braked))
    assert time.monotonic() - silent_since < 1.0
    assert "brakes engaged: no command for 40 ms" in simulation.log()
    assert all(25.0 < value < 70.0 for value in states[-1].temperature)


def test_commands_are_ordered_by_name(simulation: Simulation) -> None:
    names = RobotModel.load("ur5e").joint_names
    values = np.array([0.2, 0.0, 0.0, 0.0, 0.0, 0.0])  # wrist_3 comes first here
    joints = simulation.received[topics.JOINT_STATES.name]
    joints.clear()
    simulation.wait_for(
        lambda: bool(joints) and joints[-1].velocity[5] > 0.15,
        each=lambda: simulation.command(topics.VELOCITY_COMMAND, values, tuple(reversed(names))),
    )
    assert np.abs(joints[-1].velocity[:5]).max() < 0.05
    simulation.wait_for(lambda: np.abs(joints[-1].velocity).max() < 0.01)  # the brake


def test_bad_commands_are_refused_and_the_node_lives(
    simulation: Simulation, gravity: np.ndarray
) -> None:
    states = simulation.received[topics.DRIVE_STATE.name]
    simulation.wait_for(lambda: all(states[-1].braked))
    for values, names, reason in (
        (np.full(6, np.nan), (), "must be finite"),
        (np.ones(5), (), "must be 6 values"),
        (np.ones(6), tuple("abcdef"), "must be each of shoulder_pan_joint"),
    ):
        simulation.wait_for(
            lambda reason=reason: reason in simulation.log(),
            each=lambda values=values, names=names: simulation.command(
                topics.EFFORT_COMMAND, values, names
            ),
        )
        assert all(simulation.newest(topics.DRIVE_STATE).braked)
    simulation.wait_for(
        lambda: not any(states[-1].braked),
        each=lambda: simulation.command(topics.EFFORT_COMMAND, gravity),
    )


def test_horn_is_logged(simulation: Simulation) -> None:
    simulation.publishers[topics.HORN.name].publish(Bool(data=True))
    simulation.wait_for(lambda: "horn on at" in simulation.log())


def test_ends_in_order_on_a_signal(simulation: Simulation) -> None:
    begin = time.monotonic()
    simulation.process.send_signal(signal.SIGTERM)
    assert simulation.process.wait(10.0) == 0
    assert time.monotonic() - begin < 3.0
    assert "Traceback" not in simulation.log()
