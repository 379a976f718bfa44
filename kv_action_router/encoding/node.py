"""The node ``task_key_encoder``: stage 1 as a managed node.

Subscriptions, all best effort, so that any publisher is heard: ``joint_states``, ``imu``, ``odom``,
``drive_state``, ``camera/color/image_raw``, ``camera/depth/image_rect_raw``,
``camera/color/camera_info``, ``heartbeat/actuator_injector`` (epoch); ``task_state`` (latched).
Publishers: ``task_key`` at 100 Hz and at once on a new image, ``obstacle_spheres``,
``failure_event``, ``heartbeat/task_key_encoder``. Parameters: ``encoding/config.py``.

One data thread does all the work: it waits for color images and a period, and polls the rest.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CameraInfo, Image, JointState

from kv_action_router.contracts import Stage, TaskKey
from kv_action_router.encoding.camera import Intrinsics
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder, Origin
from kv_action_router.encoding.images import ColorImage, DepthImage, decode_color, decode_depth
from kv_action_router.encoding.odometry import OdometryEvent, OdometrySample
from kv_action_router.encoding.perception import Sight
from kv_action_router.encoding.stamps import Frame, ImagePairer, StampCheck
from kv_action_router.encoding.throttle import Throttle
from kv_action_router.encoding.warm_up import limit_threads, warm_up
from kv_action_router.errors import EncodingError, ImageError, InputError, MissingJointsError
from kv_action_router.msg import ObstacleSpheres, TaskState
from kv_action_router.msg import TaskKey as TaskKeyMessage
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import qos, topics
from kv_action_router.ros.conversions import (
    drives_from_msg,
    imu_from_msg,
    key_to_msg,
    obstacles_to_msg,
    task_state_from_msg,
)
from kv_action_router.ros.conversions.fields import stamp_from_msg
from kv_action_router.ros.lifecycle import StageNode
from kv_action_router.ros.process import run
from kv_action_router.ros.streams import DataLoop, LatestReader, Sample

_JOINT_QUEUE = 16  # messages between two keys; drivers publish arm, gripper and wheels apart
_WARNING_PERIOD = 5.0  # [s] between two warnings of a kind
_BODY_SHARE = 0.6  # of the period that must have passed since the last key


class TaskKeyEncoder(StageNode[EncoderConfig]):
    """Observation to key.

    Invariant: between activate and deactivate only the data thread touches the encoder; the
    executor hands it the newest task state by replacing one reference.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__("task_key_encoder", EncoderConfig, **arguments)
        self._encoder: KeyEncoder | None = None
        self._owned: list[tuple[Any, Any]] = []  # (destroy, entity)

    @property
    def epoch(self) -> int:
        """The injector's epoch that the keys carry."""
        return self._encoder.epoch if self._encoder is not None else 0

    # --- transitions -------------------------------------------------------------------------

    def configure_stage(self) -> None:
        """Load the robot, warm up, subscribe."""
        config = self.config
        limit_threads()
        self._robot = RobotModel.load(config.robot, config.joint_prefix)
        key, obstacles = warm_up(config, self._robot)
        self._key_message = key_to_msg(key, TaskKeyMessage())
        self._obstacle_message = obstacles_to_msg(obstacles, ObstacleSpheres())
        self._key_publisher = self._publisher(topics.TASK_KEY)
        self._obstacle_publisher = self._publisher(topics.OBSTACLE_SPHERES)
        self._task: TaskState | None = None
        subscription = self.create_subscription(
            topics.TASK_STATE.type,
            topics.TASK_STATE.name,
            self._on_task,
            topics.TASK_STATE.profile(),
        )
        self._owned.append((self.destroy_subscription, subscription))
        self._color = self._reader(topics.COLOR_IMAGE)
        self._depth = self._reader(topics.DEPTH_IMAGE)
        self._info = self._reader(topics.CAMERA_INFO)
        self._imu = self._reader(topics.IMU)
        self._odometry = self._reader(topics.ODOMETRY)
        self._drives = self._reader(topics.DRIVE_STATE)
        self._injector = self._reader(topics.HEARTBEATS["actuator_injector"])
        deep = qos.sensor()
        deep.depth = _JOINT_QUEUE
        self._joints = self.plane.reader(topics.JOINT_STATES, profile=deep, raw=True)

    def activate_stage(self) -> None:
        """Start with an encoder that remembers nothing, and samples that come from now on."""
        config = self.config
        self._encoder = KeyEncoder(config, self._robot, first_trace_id=_first_trace_id())
        self._pairer = ImagePairer(config.pairing_tolerance, 2.0 * config.pairing_tolerance)
        self._color_stamps = StampCheck(config.stamp_tolerance)
        self._depth_stamps = StampCheck(config.stamp_tolerance)
        self._warnings = Throttle(_WARNING_PERIOD)
        self._events = Throttle(1.0)
        self._joint_origin: Sample | None = None
        self._joint_stamp_ns = 0
        self._period_ns = round(1e9 / config.key_rate)
        self._last_key_ns = 0
        self._images = 0
        self._task_taken: TaskState | None = None
        for reader in (self._color, self._depth, self._imu, self._odometry, self._drives):
            reader.take_newest()
        self._joints.take_newest()
        self.start_loop(
            DataLoop(
                self.plane,
                (self._color,),
                self._on_wake,
                self.loop_failed,
                period_ns=self._period_ns,
                name="encoder",
            )
        )

    def deactivate_stage(self) -> None:
        """Nothing but the data loop works, and it has been stopped."""

    def cleanup_stage(self) -> None:
        """Destroy publishers and the latched subscription; readers go with the data plane."""
        for destroy, entity in self._owned:
            destroy(entity)
        self._owned.clear()
        self._encoder = None

    def _publisher(self, topic: topics.Topic) -> Any:
        publisher = self.create_publisher(topic.type, topic.name, topic.profile())
        self._owned.append((self.destroy_publisher, publisher))
        return publisher

    def _reader(self, topic: topics.Topic) -> LatestReader[Any]:
        return self.plane.reader(topic, profile=qos.sensor())

    def _on_task(self, message: TaskState) -> None:
        self._task = message

    # --- the data thread ------------------------------------------------------------------------

    def _on_wake(self, now_ns: int) -> None:
        encoder = self._encoder
        assert encoder is not None
        self._take_task(encoder)
        self._take_joints(encoder)
        self._take_images()
        pair = self._pairer.take()
        if pair is not None:
            self._publish_image_key(encoder, *pair)
        if now_ns - self._last_key_ns >= _BODY_SHARE * self._period_ns:
            self._take_body_inputs(encoder)
            self._publish_body_key(encoder)

    def _publish_image_key(self, encoder: KeyEncoder, color: Frame, depth: Frame) -> None:
        try:
            pixels, distances = self._decode(encoder, color.image, depth.image)
            origin = Origin(color.receipt_ns, color.origin_ns, color.time_ns)
            key = encoder.on_image(pixels, distances, origin, time.monotonic_ns())
        except ImageError as error:
            self._event(error, "images")
            return
        except MissingJointsError as error:
            self._event(error, "joint_states")
            return
        perception = encoder.perception
        if key is None:
            reason = perception.reason if perception is not None else ""
            self._event(ImageError(f"depth image: {reason}"), "depth")
            return
        self._publish(key)
        self._images += 1
        if self._images % self.config.obstacle_every == 1 % self.config.obstacle_every:
            message = obstacles_to_msg(encoder.obstacles(distances, key), self._obstacle_message)
            self._obstacle_publisher.publish(message)
        if perception is not None and perception.sight is Sight.HIDDEN:
            self.get_logger().debug(f"target: {perception.reason}")

    def _publish_body_key(self, encoder: KeyEncoder) -> None:
        sample = self._joint_origin
        now = time.monotonic_ns()
        try:
            if sample is None:
                encoder.joints.sample(now)  # raises, naming the joints
                return
            origin = Origin(sample.receipt_ns, sample.origin_ns, self._joint_stamp_ns)
            key = encoder.on_body(now, origin)
        except MissingJointsError as error:
            self._event(error, "joint_states")
            return
        self._publish(key)

    def _publish(self, key: TaskKey) -> None:
        message = key_to_msg(key, self._key_message)
        now = time.monotonic_ns()
        message.decision.stage_monotonic_ns[Stage.KEY] = now
        self._key_publisher.publish(message)
        self._last_key_ns = now

    def _decode(
        self, encoder: KeyEncoder, color: Image, depth: Image
    ) -> tuple[ColorImage, DepthImage]:
        self._take_camera_info(encoder)
        if not encoder.has_camera:
            raise ImageError(f"camera info: none received on {topics.CAMERA_INFO.name}")
        return (
            decode_color(
                color.data,
                color.encoding,
                color.height,
                color.width,
                color.step,
                color.is_bigendian,
            ),
            decode_depth(
                depth.data,
                depth.encoding,
                depth.height,
                depth.width,
                depth.step,
                depth.is_bigendian,
            ),
        )

    # --- taking samples ---------------------------------------------------------------------------

    def _take_task(self, encoder: KeyEncoder) -> None:
        message = self._task
        if message is not self._task_taken and message is not None:
            self._task_taken = message
            encoder.on_task(task_state_from_msg(message))

    def _take_joints(self, encoder: KeyEncoder) -> None:
        """Take in what came since the last time: the newest, and older ones for joints it lacks."""
        samples = []
        while (sample := self._joints.take()) is not None:
            samples.append(sample)
        wanted = set(encoder.joints.names)
        used = []
        for sample in reversed(samples):
            message = deserialize_message(sample.message, JointState)
            used.append((sample, message))
            wanted.difference_update(message.name)
            if not wanted:
                break
        for sample, message in reversed(used):
            self._take_joint_message(encoder, sample, message)

    def _take_joint_message(self, encoder: KeyEncoder, sample: Sample, message: JointState) -> None:
        try:
            taken = encoder.joints.update(
                message.name,
                np.frombuffer(message.position),
                np.frombuffer(message.velocity),
                np.frombuffer(message.effort),
                stamp_from_msg(message.header.stamp),
                sample.receipt_ns,
            )
        except InputError as error:
            self._event(EncodingError(f"joint states refused: {error}"), "joint_states")
            return
        if taken:
            self._joint_origin = sample
            stamp = stamp_from_msg(message.header.stamp)
            self._joint_stamp_ns = stamp or time.time_ns()
            if not encoder.joints.velocity_measured.all():
                self._warn("velocity", "joint velocities are not measured: taken from positions")

    def _take_images(self) -> None:
        for reader, check, add in (
            (self._depth, self._depth_stamps, self._pairer.add_depth),
            (self._color, self._color_stamps, self._pairer.add_color),
        ):
            sample = reader.take()
            if sample is not None:
                add(self._frame(sample, check))
        if self._pairer.unpaired:
            self._pairer.unpaired = 0
            self._event(ImageError("color image: no depth image belongs to it"), "pairing")

    def _frame(self, sample: Sample, check: StampCheck) -> Frame:
        stamp = stamp_from_msg(sample.message.header.stamp)
        now = self.get_clock().now().nanoseconds  # simulated time, when stamps are
        reason = check.check(stamp, now)
        if reason:
            self._warn("stamp", f"image {reason}: receipt time is used instead")
        return Frame(
            image=sample.message,
            stamp_ns=stamp,
            time_ns=now if reason else stamp,
            receipt_ns=sample.receipt_ns,
            origin_ns=sample.origin_ns,
            ordered=check.ordered,
        )

    def _take_camera_info(self, encoder: KeyEncoder) -> None:
        sample = self._info.take()
        if sample is None:
            return
        message: CameraInfo = sample.message
        encoder.set_camera(
            Intrinsics.from_matrix(message.width, message.height, message.k, message.d)
        )

    def _take_body_inputs(self, encoder: KeyEncoder) -> None:
        if (sample := self._injector.take()) is not None:
            encoder.on_epoch(sample.message.epoch)
        if (sample := self._odometry.take()) is not None:
            self._on_odometry(encoder, odometry_from_msg(sample.message, sample.receipt_ns))
        if (sample := self._imu.take()) is not None:
            encoder.inputs.on_imu(imu_from_msg(sample.message, sample.receipt_ns))
        if (sample := self._drives.take()) is not None:
            try:
                encoder.inputs.on_drives(drives_from_msg(sample.message, sample.receipt_ns))
            except InputError as error:
                self._event(EncodingError(f"drive state refused: {error}"), "drive_state")

    def _on_odometry(self, encoder: KeyEncoder, sample: OdometrySample) -> None:
        event = encoder.on_odometry(sample)
        if event is OdometryEvent.JUMP:
            length = encoder.inputs.jump_length
            self.report(
                EncodingError.error_code,
                f"odometry jumped by {length:.2f} m: window and held target are dropped",
                detector="odometry",
                signal=topics.ODOMETRY.name,
                value=length,
                limit=self.config.odometry_jump,
            )
        elif event is OdometryEvent.INVALID:
            self._warn("odometry", "odometry is not finite: masked")

    # --- saying so ----------------------------------------------------------------------------------

    def _event(self, error: EncodingError, signal: str) -> None:
        if self._events.allows(signal, time.monotonic_ns()):
            self.report(error.error_code, str(error), detector="encoder", signal=signal)

    def _warn(self, name: str, text: str) -> None:
        if self._warnings.allows(name, time.monotonic_ns()):
            self.get_logger().warning(text)


def odometry_from_msg(message: Odometry, receipt_ns: int) -> OdometrySample:
    """Return the planar odometry that a message carries; a zero quaternion gives no yaw (NaN)."""
    position, turn = message.pose.pose.position, message.pose.pose.orientation
    x, y, z, w = turn.x, turn.y, turn.z, turn.w
    known = x or y or z or w
    yaw = math.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z) if known else math.nan
    twist = message.twist.twist
    return OdometrySample(position.x, position.y, yaw, twist.linear.x, twist.angular.z, receipt_ns)


def _first_trace_id() -> int:
    """Return a start that differs between runs: seconds of the wall clock above 32 bits of count."""
    return (int(time.time()) & 0x7FFFFFFF) << 32


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the exit code."""
    return run(lambda: [TaskKeyEncoder()], arguments)


if __name__ == "__main__":
    raise SystemExit(main())
