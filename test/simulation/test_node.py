"""The nodes ``simulation`` and ``camera`` as real processes over DDS."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here")

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.qos import QoSProfile, ReliabilityPolicy  # noqa: E402
from std_msgs.msg import Bool, Float64MultiArray, MultiArrayDimension  # noqa: E402

from kv_action_router.robots.model import RobotModel  # noqa: E402
from kv_action_router.ros import topics  # noqa: E402
from kv_action_router.ros.streams import DataPlane  # noqa: E402
from kv_action_router.srv import PlaceTarget  # noqa: E402

pytestmark = pytest.mark.dds

PATIENCE_S = 45.0  # the machine may be busy with other tests
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
    """The simulation's process and a client beside it."""

    def __init__(self, process: Any, camera: Any, context: Any) -> None:
        self.process = process
        self.camera = camera
        self.log = process.output
        self.node = rclpy.create_node("client", context=context)
        self.executor = SingleThreadedExecutor(context=context)
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

    def newest(
        self,
        topic: topics.Topic,
        condition: Callable[[Any], bool] = lambda _: True,
        each: Callable[[], None] | None = None,
    ) -> Any:
        """Spin until a message comes that was made after this call and fulfills a condition."""
        store = self.received[topic.name]
        begin = time.time()
        self.wait_for(
            lambda: bool(store) and stamp(store[-1]) >= begin and condition(store[-1]), each
        )
        return store[-1]

    def wait_for(
        self, condition: Callable[[], bool], each: Callable[[], None] | None = None
    ) -> None:
        """Spin until a condition holds; ``each`` is called about every 10 ms."""
        until = time.monotonic() + PATIENCE_S
        due = 0.0
        while not condition():
            assert self.process.running, self.log()
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

    def close(self) -> None:
        """Destroy the client; the process ends with its fixture."""
        self.executor.shutdown()
        self.node.destroy_node()


@pytest.fixture
def simulation(spawn: Callable[..., Any], ros: Any) -> Iterator[Simulation]:
    camera = spawn("kv_action_router.ros.simulated_camera")
    one = Simulation(spawn("kv_action_router.simulation.node"), camera, ros)
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


def check_rates(simulation: Simulation) -> None:
    # Sequence numbers count what was published, whatever a busy client loses.
    plane = DataPlane(simulation.node)
    readers = {topic.name: plane.reader(topic) for topic in SENSORS}
    samples: dict[str, list[tuple[int, float]]] = {name: [] for name in readers}

    def poll() -> bool:
        for name, reader in readers.items():
            sample = reader.take_newest()
            if sample is not None:
                samples[name].append((sample.number, stamp(sample.message)))
        return all(seen and seen[-1][1] - seen[0][1] > 3.0 for seen in samples.values())

    try:
        simulation.wait_for(poll)
    finally:
        plane.destroy()
    rates = {
        name: (seen[-1][0] - seen[0][0]) / (seen[-1][1] - seen[0][1])
        for name, seen in samples.items()
    }
    # A busy machine slows all streams down alike, and images may be skipped.
    speed = rates["joint_states"] / 500.0
    assert 0.2 < speed < 1.05
    for topic, rate, least in (
        (topics.WRENCH, 250.0, 0.9),
        (topics.IMU, 100.0, 0.9),
        (topics.DRIVE_STATE, 50.0, 0.9),
        (topics.COLOR_IMAGE, 30.0, 0.5),
        (topics.DEPTH_IMAGE, 30.0, 0.5),
        (topics.CAMERA_INFO, 30.0, 0.5),
    ):
        assert least < rates[topic.name] / (rate * speed) < 1.1, (topic.name, rates)


def check_joints_and_imu(simulation: Simulation) -> None:
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


def check_images(simulation: Simulation) -> None:
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


def check_good_places(simulation: Simulation) -> None:
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


def check_bad_places(simulation: Simulation) -> None:
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


def braked(state: Any) -> bool:
    return all(state.braked)


def released(state: Any) -> bool:
    return not any(state.braked)


def check_release_and_brake(simulation: Simulation, gravity: np.ndarray) -> None:
    assert braked(simulation.newest(topics.DRIVE_STATE))
    simulation.newest(
        topics.DRIVE_STATE,
        released,
        each=lambda: simulation.command(topics.EFFORT_COMMAND, gravity),
    )
    state = simulation.newest(topics.DRIVE_STATE, braked)
    simulation.wait_for(lambda: "brakes engaged: no command for 40 ms" in simulation.log())
    assert all(25.0 < value < 70.0 for value in state.temperature)


def check_order_by_name(simulation: Simulation) -> None:
    names = RobotModel.load("ur5e").joint_names
    values = np.array([0.2, 0.0, 0.0, 0.0, 0.0, 0.0])  # wrist_3 comes first here
    moving = simulation.newest(
        topics.JOINT_STATES,
        lambda message: message.velocity[5] > 0.15,
        each=lambda: simulation.command(topics.VELOCITY_COMMAND, values, tuple(reversed(names))),
    )
    assert np.abs(moving.velocity[:5]).max() < 0.05
    simulation.newest(topics.DRIVE_STATE, braked)
    still = simulation.newest(topics.JOINT_STATES, lambda m: np.abs(m.velocity).max() < 0.01)
    assert still.position[5] > moving.position[5] - 0.01


def check_refusals(simulation: Simulation, gravity: np.ndarray) -> None:
    simulation.newest(topics.DRIVE_STATE, braked)
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
        assert braked(simulation.newest(topics.DRIVE_STATE))
    pause = time.monotonic() + 0.08  # which drives want that have made a quick stop
    simulation.wait_for(lambda: time.monotonic() > pause)
    simulation.newest(
        topics.DRIVE_STATE,
        released,
        each=lambda: simulation.command(topics.EFFORT_COMMAND, gravity),
    )


def check_horn(simulation: Simulation) -> None:
    simulation.publishers[topics.HORN.name].publish(Bool(data=True))
    simulation.wait_for(lambda: "horn on at" in simulation.log())


def check_other_scene(simulation: Simulation) -> None:
    publisher = simulation.node.create_publisher(
        topics.SCENE_STATE.type, topics.SCENE_STATE.name, topics.SCENE_STATE.profile()
    )
    simulation.wait_for(
        lambda: "scene must be of 6 joints, 2 things and" in simulation.camera.output(),
        each=lambda: publisher.publish(topics.SCENE_STATE.type(joints=[0.0] * 7)),
    )
    simulation.newest(topics.COLOR_IMAGE)


def check_end(simulation: Simulation) -> None:
    # The camera first: scenes go on to come while it ends.
    for process in (simulation.camera, simulation.process):
        begin = time.monotonic()
        process.send(signal.SIGTERM)
        assert process.wait(10.0) == 0, process.output()
        assert time.monotonic() - begin < 3.0
        assert "Traceback" not in process.output()


# Starting the process is what takes time: one process for what belongs together.


def test_sensors_come_at_their_rates_and_make_sense(simulation: Simulation) -> None:
    check_rates(simulation)
    check_joints_and_imu(simulation)
    check_images(simulation)
    check_other_scene(simulation)


def test_targets_are_placed_or_refused_with_a_reason(simulation: Simulation) -> None:
    check_good_places(simulation)
    check_bad_places(simulation)


def test_drives_obey_refuse_and_brake_and_the_node_ends_in_order(
    simulation: Simulation, gravity: np.ndarray
) -> None:
    check_release_and_brake(simulation, gravity)
    check_order_by_name(simulation)
    check_refusals(simulation, gravity)
    check_horn(simulation)
    check_end(simulation)
