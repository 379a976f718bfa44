"""The real node process, fed by synthetic publishers over DDS."""

import shutil
import signal
import time

import numpy as np
import pytest
from encoding_builders import CENTER, CONFIG, INTRINSICS, look

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from rclpy.node import Node
from rclpy.qos import ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image, JointState
from std_msgs.msg import String

from kv_action_router.encoding.network.checkpoint import SHIPPED
from kv_action_router.encoding.scene_name import load_scenes
from kv_action_router.msg import Heartbeat, TaskKey, TaskState
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import qos, topics
from kv_action_router.ros.streams import DataPlane

pytestmark = pytest.mark.dds

ROBOT = RobotModel.load("ur5e")
START = 20.0  # [s] a process may take that long on a busy machine


class Bench:
    """Sensors of a robot that stands still, and readers of what the encoder says."""

    def __init__(self, context, reliability=ReliabilityPolicy.BEST_EFFORT):
        self.node = Node("bench", context=context)
        self.plane = DataPlane(self.node)
        deep = qos.sensor()
        deep.depth = 200
        self._keys = self.plane.reader(topics.TASK_KEY, profile=deep)
        self._obstacles = self.plane.reader(topics.OBSTACLE_SPHERES, profile=deep)
        self._events = self.plane.reader(topics.FAILURE_EVENT)
        self.keys, self.obstacles, self.events = [], [], []
        profile = qos.driver()
        profile.reliability = reliability
        self._publishers = {
            topic.name: self.node.create_publisher(topic.type, topic.name, profile)
            for topic in (
                topics.JOINT_STATES,
                topics.COLOR_IMAGE,
                topics.DEPTH_IMAGE,
                topics.CAMERA_INFO,
            )
        }
        self.joints = list(ROBOT.joint_names)
        self.velocity = 0.0
        self.encoding = "rgb8"
        self.stamps = "now"
        self.color, self.depth = look(noise=3e-4)
        self.matrix = [INTRINSICS.fx, 0.0, INTRINSICS.cx, 0.0, INTRINSICS.fy, INTRINSICS.cy]
        self._rounds = 0

    def publish(self, message, topic):
        message.header.stamp = self.node.get_clock().now().to_msg()
        if self.stamps == "zero":
            message.header.stamp.sec = message.header.stamp.nanosec = 0
        elif self.stamps == "ahead":
            message.header.stamp.sec += 6 * 365 * 86400
        self._publishers[topic.name].publish(message)

    def step(self):
        """Publish one period of 10 ms: arm and wrist apart, every third time an image."""
        home = dict(zip(ROBOT.joint_names, ROBOT.home, strict=True))
        for part in (self.joints[:3], self.joints[3:], ["gripper"]):
            message = JointState(name=part, position=[home.get(name, 0.0) for name in part])
            message.velocity = [self.velocity] * len(part)
            self.publish(message, topics.JOINT_STATES)
        if self._rounds % 3 == 0:
            height, width = self.depth.shape
            info = CameraInfo(width=width, height=height)
            info.k = np.array([*self.matrix, 0.0, 0.0, 1.0])
            self.publish(info, topics.CAMERA_INFO)
            depth = Image(height=height, width=width, encoding="32FC1", step=4 * width)
            depth.data.frombytes(self.depth.tobytes())
            self.publish(depth, topics.DEPTH_IMAGE)
            color = Image(height=height, width=width, encoding=self.encoding, step=3 * width)
            color.data.frombytes(self.color.tobytes())
            self.publish(color, topics.COLOR_IMAGE)
        self._rounds += 1

    def until(self, predicate, timeout, what):
        """Publish and collect until the predicate is true of what came since the call."""
        for collected in (self.keys, self.obstacles, self.events):
            collected.clear()
        deadline = time.monotonic() + timeout
        due = time.monotonic()
        while time.monotonic() < deadline:
            self.step()
            for reader, collected in (
                (self._keys, self.keys),
                (self._obstacles, self.obstacles),
                (self._events, self.events),
            ):
                while (sample := reader.take()) is not None:
                    collected.append(sample.message)
            if predicate():
                return
            due = max(due + 0.010, time.monotonic() - 0.010)
            time.sleep(max(0.0, due - time.monotonic()))
        codes = [(event.error_code, event.error_msg) for event in self.events]
        pytest.fail(f"{what} did not happen within {timeout} s: {len(self.keys)} keys, {codes}")

    def image_keys(self):
        return [key for key in self.keys if key.trigger == TaskKey.TRIGGER_IMAGE]

    def close(self):
        self.plane.destroy()
        self.node.destroy_node()


@pytest.fixture
def bench(ros):
    made = Bench(ros)
    yield made
    made.close()


def start(spawn, *arguments):
    position = ", ".join(str(value) for value in CONFIG.camera_position)
    return spawn(
        "kv_action_router.encoding.node",
        "--ros-args",
        "-p",
        "autostart:=true",
        "-p",
        f"camera_position:=[{position}]",
        *arguments,
    )


@pytest.mark.parametrize("reliability", ["best_effort", "reliable"])
def test_keys_from_any_publisher(ros, spawn, reliability):
    bench = Bench(ros, ReliabilityPolicy[reliability.upper()])
    try:
        process = start(spawn, "-p", "robot_id:=ur5e")
        bench.until(
            lambda: len(bench.image_keys()) >= 5 and len(bench.keys) >= 30 and bench.obstacles,
            START,
            "keys of images and joint states, and obstacles",
        )
        for key in bench.keys:
            assert np.isfinite(key.key).all()
            assert len(key.joint_name) == 6
        key = bench.image_keys()[-1]
        assert key.target_valid
        position = key.target.pose.position
        assert np.linalg.norm([position.x, position.y, position.z] - CENTER) < 1e-3
        origin, published = key.decision.stage_monotonic_ns[:2]
        assert 0 < origin <= key.decision.trigger_monotonic_ns <= published
        assert published - key.decision.trigger_monotonic_ns < 1_000_000_000
        sequences = [key.decision.sequence for key in bench.keys]
        assert sequences == sorted(set(sequences))
        assert len({key.decision.trace_id for key in bench.keys}) == len(bench.keys)
        ids = {key.decision.trace_id for key in bench.image_keys()}
        assert {message.decision.trace_id for message in bench.obstacles} & ids
        assert (key.decision.robot_id, key.decision.domain) == ("ur5e", "ur5e")
        process.send(signal.SIGTERM)
        assert process.wait(10.0) == 0
        assert "Traceback" not in process.output()
        assert "not measured" not in process.output()
    finally:
        bench.close()


def test_task_epoch_and_scene_reach_the_keys(bench, spawn, tmp_path):
    start(spawn, "-p", "scene_source:=topic")
    scenes = bench.node.create_publisher(String, topics.SCENE.name, qos.latched())
    scenes.publish(String(data="corridor"))
    latched = bench.node.create_publisher(TaskState, topics.TASK_STATE.name, qos.latched())
    state = TaskState(status=TaskState.STATUS_RUNNING, intent=[0.0] * 128)
    state.decision.intent_id, state.decision.decision_id = "touch", 7
    latched.publish(state)
    topic = topics.HEARTBEATS["actuator_injector"]
    heartbeat = bench.node.create_publisher(topic.type, topic.name, topic.profile())

    def reached():
        heartbeat.publish(Heartbeat(node="actuator_injector", epoch=5))
        return any(
            (key.decision.decision_id, key.decision.intent_id, key.decision.epoch)
            == (7, "touch", 5)
            and key.decision.scene == "corridor"
            for key in bench.keys
        )

    bench.until(reached, START, "task, epoch and scene in a key")
    scenes.publish(String(data="x" * 100))
    bench.until(
        lambda: any("scene must be 1 to 64" in event.error_msg for event in bench.events),
        START,
        "an event about the bad scene",
    )
    bench.until(lambda: bench.keys, START, "a key after the refusal")
    assert {key.decision.scene for key in bench.keys} == {"corridor"}

    known = tmp_path / "scenes.yaml"
    verb = ("remember-scene", "corridor", "--file", str(known), "--images", "5", "--timeout", "60")
    router = spawn("kv_action_router.cli.main", *verb)
    bench.until(lambda: not router.running, START, "the end of kv_router remember-scene")
    assert router.wait(1.0) == 0, router.output()
    assert list(load_scenes(known)) == ["corridor"]


def test_faults_are_named_and_survived(bench, spawn):
    process = start(spawn, "-p", "target_hold_limit:=0.5")

    def event(code, text):
        return lambda: any(e.error_code == code and text in e.error_msg for e in bench.events)

    def recovered():
        return len(bench.image_keys()) >= 3 and bench.image_keys()[-1].target_valid

    bench.joints = bench.joints[:-1]
    bench.until(event(102, "wrist_3_joint"), START, "the missing joint's event")
    assert not bench.keys
    bench.joints = list(ROBOT.joint_names)
    bench.until(recovered, START, "a target after all joints were seen")

    bench.encoding = "jpeg"
    bench.until(event(101, "'jpeg'"), 5.0, "the encoding's event")
    bench.until(lambda: len(bench.keys) >= 10, 5.0, "keys without images")
    bench.encoding = "rgb8"
    bench.until(recovered, 5.0, "recovery of the encoding")

    good, bench.matrix = bench.matrix, [0.0] * 6
    bench.until(event(101, "camera matrix"), 5.0, "the calibration's event")
    bench.matrix = good
    bench.until(recovered, 5.0, "recovery of the calibration")

    depth, bench.depth = bench.depth, np.full_like(bench.depth, np.nan)
    bench.until(event(101, "no valid point"), 5.0, "the depth's event")
    bench.until(lambda: len(bench.keys) >= 10, 5.0, "keys without depth")
    assert not bench.image_keys()
    bench.depth = depth
    bench.until(recovered, 5.0, "recovery of depth")

    bench.color, shown = np.full_like(bench.color, 128), bench.color
    bench.until(
        lambda: "no target (absent): no pixel of the target's color" in process.output(),
        START,
        "the reason why there is no target",
    )
    assert bench.image_keys()[-1].target_sight == TaskKey.SIGHT_ABSENT
    bench.color = shown
    bench.until(recovered, 5.0, "recovery of the target")

    bench.velocity = float("nan")
    bench.until(
        lambda: any(key.masked_inputs & TaskKey.MASK_VELOCITY for key in bench.keys),
        5.0,
        "a masked velocity",
    )
    for key in bench.keys:
        assert np.isfinite(key.key).all()
        assert np.isfinite(key.joint_velocity).all()
    bench.velocity = 0.0

    for stamps in ("zero", "ahead", "now"):
        bench.stamps = stamps
        bench.until(recovered, 5.0, f"pairs with stamps {stamps}")
    assert process.running
    assert process.output().count("receipt time is used instead") <= 3  # throttled
    assert process.output().count("velocities are not measured") == 1
    assert "Traceback" not in process.output()


def test_bad_parameter_is_named_and_the_node_lives(spawn, wait_until):
    process = start(spawn, "-p", "target_radius:=0.0")
    wait_until(
        lambda: "target_radius must be at least 0.002" in process.output(), START, "the error"
    )
    assert process.running
    process.send(signal.SIGINT)
    assert process.wait(5.0) == 0


def test_truncated_checkpoint_is_named_and_nothing_steps_in(bench, spawn, tmp_path):
    folder = tmp_path / "cut"
    shutil.copytree(SHIPPED / "disc", folder)
    file = folder / "closeup.onnx"
    file.write_bytes(file.read_bytes()[:-100])
    process = start(spawn, "-p", "perception:=onnx", "-p", f"checkpoint:={folder}")
    bench.until(
        lambda: f"{file} must be a complete ONNX file" in process.output(), START, "the error"
    )
    assert process.running
    assert not bench.keys  # no segmentation in its place
