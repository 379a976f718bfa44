"""The polled subscriptions of stage 1, and what becomes of their samples.

All are best effort, so that any publisher is heard. Used by the data thread of
``encoding/node.py``; what cannot be used is said through the two methods of :class:`Announcer`.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from nav_msgs.msg import Odometry

from kv_action_router.contracts import JointReading
from kv_action_router.encoding.camera import Intrinsics
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder, Origin
from kv_action_router.encoding.images import ColorImage, DepthImage, decode_color, decode_depth
from kv_action_router.encoding.odometry import OdometryEvent, OdometrySample
from kv_action_router.encoding.stamps import Frame, ImagePairer, StampCheck
from kv_action_router.errors import EncodingError, ImageError, InputError
from kv_action_router.ros import qos, topics
from kv_action_router.ros.conversions.fields import stamp_from_msg
from kv_action_router.ros.stamping import stamp_clock
from kv_action_router.ros.streams import DataPlane, LatestReader, Sample
from kv_action_router.ros.wire import DriveReader, HeartbeatReader, ImuReader, JointReader

_JOINT_QUEUE = 16  # messages between two keys; drivers publish arm, gripper and wheels apart
_CALIBRATION_EVERY = 10  # image pairs; a calibration that changes is in force after 0.3 s
_UNPAIRED = 3  # color images in a row without depth that are worth an event; best effort loses one


class Announcer(Protocol):
    """Says what happened, as often as is bearable."""

    def event(
        self, error: EncodingError, signal: str, *, value: float = math.nan, limit: float = math.nan
    ) -> None:
        """Publish a failure event."""

    def warn(self, name: str, text: str) -> None:
        """Log a warning."""


class EncoderStreams:
    """Newest samples of robot and camera.

    Attributes:
        color: the reader whose samples a data loop waits for.
        joint_origin: of the newest joint state with a required joint; None before the first.
    """

    def __init__(self, plane: DataPlane, config: EncoderConfig, announcer: Announcer) -> None:
        self._plane = plane
        self._clock = stamp_clock(plane.node)
        self._config = config
        self._say = announcer
        self.color = self._reader(topics.COLOR_IMAGE)
        self._depth = self._reader(topics.DEPTH_IMAGE)
        self._info = self._reader(topics.CAMERA_INFO)
        self._imu = self._reader(topics.IMU, raw=True)
        self._odometry = self._reader(topics.ODOMETRY)
        self._drives = self._reader(topics.DRIVE_STATE, raw=True)
        self._injector = self._reader(topics.HEARTBEATS["actuator_injector"], raw=True)
        self._imu_reader, self._drive_reader = ImuReader(), DriveReader()
        self._heartbeat_reader, self._joint_reader = HeartbeatReader(), JointReader()
        deep = qos.sensor()
        deep.depth = _JOINT_QUEUE
        self._joints = plane.reader(topics.JOINT_STATES, profile=deep, raw=True)
        self.restart()

    def restart(self) -> None:
        """Forget all samples that came before now."""
        for reader in (self.color, self._depth, self._imu, self._odometry, self._drives):
            reader.take_newest()
        self._joints.take_newest()
        tolerance = self._config.pairing_tolerance
        self._pairer = ImagePairer(tolerance, 2.0 * tolerance)
        self._color_stamps = StampCheck(self._config.stamp_tolerance)
        self._depth_stamps = StampCheck(self._config.stamp_tolerance)
        self.joint_origin: Origin | None = None
        self._pairs = 0

    def take_joints(self, encoder: KeyEncoder) -> None:
        """Take in what came since the last time: the newest, and older ones for joints it lacks."""
        samples = []
        while (sample := self._joints.take()) is not None:
            samples.append(sample)
        wanted: set[str] | None = None
        used: list[tuple[Sample, JointReading]] = []
        for sample in reversed(samples):
            reading = self._read_joints(sample)
            if reading is None:
                continue
            used.append((sample, reading))
            if wanted is None:
                wanted = set(encoder.joints.names)
            wanted.difference_update(reading.names)
            if not wanted:
                break
        for sample, reading in reversed(used):
            self._take_reading(encoder, sample, reading)

    def take_pair(self) -> tuple[Frame, Frame] | None:
        """Return a new color image and its depth image, or None."""
        for reader, check, add in (
            (self._depth, self._depth_stamps, self._pairer.add_depth),
            (self.color, self._color_stamps, self._pairer.add_color),
        ):
            sample = reader.take()
            if sample is not None:
                add(self._frame(sample, check))
        if self._pairer.unpaired >= _UNPAIRED:
            text = f"{self._pairer.unpaired} color images in a row without a depth image"
            self._say.event(ImageError(text), "pairing")
        return self._pairer.take()

    def decode(
        self, encoder: KeyEncoder, color: Frame, depth: Frame
    ) -> tuple[ColorImage, DepthImage]:
        """Return both images as arrays, with the newest calibration in force.

        Raises:
            ImageError: no calibration, a bad one, or an image that cannot be decoded.
        """
        self._pairs += 1
        if not encoder.has_camera or self._pairs % _CALIBRATION_EVERY == 0:
            self._take_calibration(encoder)
        if not encoder.has_camera:
            raise ImageError(f"camera info: none received on {topics.CAMERA_INFO.name}")
        c, d = color.image, depth.image
        return (
            decode_color(c.data, c.encoding, c.height, c.width, c.step, bool(c.is_bigendian)),
            decode_depth(d.data, d.encoding, d.height, d.width, d.step, bool(d.is_bigendian)),
        )

    def _take_calibration(self, encoder: KeyEncoder) -> None:
        if (sample := self._info.take()) is not None:
            info = sample.message
            encoder.set_camera(Intrinsics.from_matrix(info.width, info.height, info.k, info.d))

    def take_body_inputs(self, encoder: KeyEncoder) -> None:
        """Take in epoch, odometry, IMU and drive feedback."""
        if (sample := self._injector.take()) is not None:
            self._take_epoch(encoder, sample)
        if (sample := self._odometry.take()) is not None:
            self._on_odometry(encoder, odometry_from_msg(sample.message, sample.receipt_ns))
        if (sample := self._imu.take()) is not None:
            self._take_imu(encoder, sample)
        if (sample := self._drives.take()) is not None:
            try:
                drives = self._drive_reader.read(sample.message, sample.receipt_ns)
                encoder.inputs.on_drives(drives)
            except InputError as error:
                self._say.event(EncodingError(f"drive state refused: {error}"), "drive_state")

    def _take_epoch(self, encoder: KeyEncoder, sample: Sample) -> None:
        try:
            _, epoch = self._heartbeat_reader.read(sample.message)
        except InputError as error:
            self._say.warn("heartbeat", f"heartbeat refused: {error}")
        else:
            encoder.on_epoch(epoch)

    def _take_imu(self, encoder: KeyEncoder, sample: Sample) -> None:
        try:
            encoder.inputs.on_imu(self._imu_reader.read(sample.message, sample.receipt_ns))
        except InputError as error:
            self._say.event(EncodingError(f"IMU refused: {error}"), "imu")

    def _reader(self, topic: topics.Topic, *, raw: bool = False) -> LatestReader[Any]:
        return self._plane.reader(topic, profile=qos.sensor(), raw=raw)

    def _read_joints(self, sample: Sample) -> JointReading | None:
        try:
            return self._joint_reader.read(sample.message, sample.receipt_ns)
        except InputError as error:
            self._say.event(EncodingError(f"joint states refused: {error}"), "joint_states")
            return None

    def _take_reading(self, encoder: KeyEncoder, sample: Sample, reading: JointReading) -> None:
        try:
            taken = encoder.joints.update(*reading)
        except InputError as error:
            self._say.event(EncodingError(f"joint states refused: {error}"), "joint_states")
            return
        if taken:
            self.joint_origin = Origin(
                sample.receipt_ns, sample.origin_ns, reading.stamp_ns or self._clock()
            )
            if encoder.joints.velocity_estimated:
                self._say.warn(
                    "velocity", "joint velocities are not measured: taken from positions"
                )

    def _frame(self, sample: Sample, check: StampCheck) -> Frame:
        stamp = stamp_from_msg(sample.message.header.stamp)
        now = self._clock()
        reason = check.check(stamp, now)
        if reason:
            self._say.warn("stamp", f"image {reason}: receipt time is used instead")
        return Frame(
            image=sample.message,
            stamp_ns=stamp,
            time_ns=now if reason else stamp,
            receipt_ns=sample.receipt_ns,
            origin_ns=sample.origin_ns,
            ordered=check.ordered,
        )

    def _on_odometry(self, encoder: KeyEncoder, sample: OdometrySample) -> None:
        event = encoder.on_odometry(sample)
        if event is OdometryEvent.JUMP:
            length = encoder.inputs.jump_length
            self._say.event(
                EncodingError(f"odometry jumped by {length:.2f} m: window and target dropped"),
                topics.ODOMETRY.name,
                value=length,
                limit=self._config.odometry_jump,
            )
        elif event is OdometryEvent.INVALID:
            self._say.warn("odometry", "odometry is not finite: masked")


def odometry_from_msg(message: Odometry, receipt_ns: int) -> OdometrySample:
    """Return the planar odometry that a message carries; a zero quaternion gives no yaw (NaN)."""
    position, turn = message.pose.pose.position, message.pose.pose.orientation
    x, y, z, w = turn.x, turn.y, turn.z, turn.w
    known = x or y or z or w
    yaw = math.atan2(2.0 * (w * z + x * y), w * w + x * x - y * y - z * z) if known else math.nan
    twist = message.twist.twist
    return OdometrySample(position.x, position.y, yaw, twist.linear.x, twist.angular.z, receipt_ns)
