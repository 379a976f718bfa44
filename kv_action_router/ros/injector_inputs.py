"""Polled subscriptions of the injector: from messages to the inputs of one tick."""

from __future__ import annotations

from collections.abc import Sequence

from lifecycle_msgs.msg import State
from rclpy.qos import QoSProfile

from kv_action_router.errors import InputError
from kv_action_router.injection.signals import Inputs
from kv_action_router.injection.stop_latch import StopRequest
from kv_action_router.ros import qos, topics
from kv_action_router.ros.conversions import execution_value_from_msg
from kv_action_router.ros.streams import DataPlane, Sample
from kv_action_router.ros.wire import (
    ChunkReader,
    DriveReader,
    HeartbeatReader,
    ImuReader,
    JointReader,
)

_IMU_PERIOD_NS = 20_000_000  # more than its watchdog needs
_TRIM_EVERY = 5  # of those IMU samples go into the slow trims; the rest are signs of life
_QUEUE = 8


class InjectorInputs:
    """Fills :class:`Inputs` from the data plane; the control loop's thread only.

    An empty poll costs a few percent of a tick. So joint states, chunks and drive feedback are
    polled in every tick, the stop in every second one, the heartbeats in turn in the others, the
    IMU every 20 ms.
    """

    def __init__(self, plane: DataPlane, nodes: Sequence[str]) -> None:
        """Subscribe.

        Raises:
            InputError: a node to be watched has no heartbeat topic.
        """
        self.inputs = Inputs()
        self._joints = plane.reader(topics.JOINT_STATES, profile=qos.sensor(), raw=True)
        self._joint_reader = JointReader()
        profile = _deep(qos.command())
        self._chunks = plane.reader(topics.TRAJECTORY_CHUNK, profile=profile, raw=True)
        self._chunk_reader = ChunkReader()
        self._stops = plane.reader(topics.STOP, profile=_deep(qos.latched()))
        self._drives = plane.reader(topics.DRIVE_STATE, profile=qos.sensor(), raw=True)
        self._drive_reader = DriveReader()
        self._imu = plane.reader(topics.IMU, profile=qos.sensor(), raw=True)
        self._imu_reader = ImuReader()
        self._imu_count = 0
        self._execution = plane.reader(topics.EXECUTION_VALUE)
        self._imu_due_ns = 0
        self._heartbeat_reader = HeartbeatReader()
        self._heartbeats = []
        for node in nodes:
            if node not in topics.HEARTBEATS:
                raise InputError("watched_nodes", f"of {', '.join(topics.HEARTBEATS)}", node)
            self._heartbeats.append(
                (node, plane.reader(topics.HEARTBEATS[node], profile=qos.sensor(), raw=True))
            )
        self._turn = 0
        self.malformed: list[tuple[str, str]] = []  # (topic, why) it is unreadable

    def poll(self, now_ns: int) -> Inputs:
        """Return what was received since the last call; the same object every time."""
        inputs = self.inputs
        inputs.clear()
        self._poll_joints(inputs)
        self._poll_chunks(inputs)
        self._turn += 1
        self._poll_drives(inputs)
        turn, odd = divmod(self._turn, 2)
        if not odd or not self._heartbeats:
            self._poll_stops(inputs)
        else:
            node, reader = self._heartbeats[turn % len(self._heartbeats)]
            if (beat := reader.take()) is not None:
                self._take_heartbeat(inputs, node, beat)
        if now_ns >= self._imu_due_ns:
            self._imu_due_ns = now_ns + _IMU_PERIOD_NS
            self._poll_imu(inputs)
            self._poll_execution(inputs)
        return inputs

    def _poll_drives(self, inputs: Inputs) -> None:
        if (drives := self._drives.take()) is None:
            return
        try:
            inputs.drives = self._drive_reader.read(drives.message, drives.receipt_ns)
        except InputError as error:
            self.malformed.append(("drive_state", str(error)))

    def _poll_stops(self, inputs: Inputs) -> None:
        while (stop := self._stops.take()) is not None:
            message = stop.message
            inputs.stops.append(
                StopRequest(
                    message.engaged,
                    message.source,
                    message.reason,
                    message.monotonic_ns,
                    message.fail_safe,
                )
            )

    def _take_heartbeat(self, inputs: Inputs, node: str, beat: Sample) -> None:
        try:
            state, _ = self._heartbeat_reader.read(beat.message)
        except InputError as error:
            self.malformed.append((f"heartbeat/{node}", str(error)))
            return
        inputs.heartbeats[node] = beat.receipt_ns
        if state != State.PRIMARY_STATE_ACTIVE:
            inputs.starting.add(node)

    def _poll_joints(self, inputs: Inputs) -> None:
        sample = self._joints.take()
        if sample is None:
            return
        try:
            inputs.joints = self._joint_reader.read(sample.message, sample.receipt_ns)
        except InputError as error:
            self.malformed.append(("joint_states", str(error)))

    def _poll_chunks(self, inputs: Inputs) -> None:
        sample = self._chunks.take()
        if sample is None:
            return
        try:
            inputs.chunk = self._chunk_reader.read(sample.message)
        except InputError as error:
            self.malformed.append(("trajectory_chunk", str(error)))

    def _poll_imu(self, inputs: Inputs) -> None:
        sample = self._imu.take()
        if sample is None:
            return
        inputs.imu_receipt_ns = sample.receipt_ns
        self._imu_count += 1
        if self._imu_count % _TRIM_EVERY == 0:
            try:
                inputs.imu = self._imu_reader.read(sample.message, sample.receipt_ns)
            except InputError as error:
                self.malformed.append(("imu", str(error)))

    def _poll_execution(self, inputs: Inputs) -> None:
        sample = self._execution.take()
        if sample is None:
            return
        try:
            inputs.execution = execution_value_from_msg(sample.message)
        except InputError as error:
            self.malformed.append(("execution_value", str(error)))


def _deep(profile: QoSProfile) -> QoSProfile:
    """A reader's queue: one overwritten stop or decision would be one too many."""
    profile.depth = _QUEUE
    return profile
