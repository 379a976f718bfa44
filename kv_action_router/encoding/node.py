"""The node ``task_key_encoder``: stage 1 as a managed node.

Subscriptions, all best effort, so that any publisher is heard: ``joint_states``, ``imu``, ``odom``,
``drive_state``, ``camera/color/image_raw``, ``camera/depth/image_rect_raw``,
``camera/color/camera_info``, ``heartbeat/actuator_injector`` (epoch); ``task_state`` and, where the
scene is told by a topic, ``scene`` (latched).
Publishers: ``task_key`` at 100 Hz and at once on a new image, ``obstacle_spheres``,
``failure_event``, ``heartbeat/task_key_encoder``. Parameters: ``encoding/config.py``.

One data thread does all the work: it waits for color images and a period, and polls the rest.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from std_msgs.msg import String

from kv_action_router.contracts import Sight, TaskKey
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder, Origin
from kv_action_router.encoding.images import DepthImage
from kv_action_router.encoding.stamps import Frame
from kv_action_router.encoding.throttle import Throttle
from kv_action_router.encoding.warm_up import limit_threads, warm_up
from kv_action_router.errors import EncodingError, ImageError, InputError
from kv_action_router.msg import TaskState
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import topics
from kv_action_router.ros.bytes_publisher import BytesPublisher
from kv_action_router.ros.conversions import task_state_from_msg
from kv_action_router.ros.encoder_streams import EncoderStreams
from kv_action_router.ros.lifecycle import StageNode
from kv_action_router.ros.process import run
from kv_action_router.ros.streams import DataLoop
from kv_action_router.ros.wire import KeyWriter, ObstacleWriter

_EVENT_PERIOD, _WARNING_PERIOD = 1.0, 5.0  # [s] between two events, or warnings, of a kind
_GRACE_NS = 500_000_000  # after activation, before missing joints are worth an event
_BODY_SHARE = 0.3  # of the period that must have passed since the last key's wake-up


class TaskKeyEncoder(StageNode[EncoderConfig]):
    """Observation to key.

    Invariant: between activate and deactivate only the data thread touches the encoder; the
    executor hands it the newest task state by replacing one reference.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__("task_key_encoder", EncoderConfig, **arguments)
        self._encoder: KeyEncoder | None = None
        self._owned: list[tuple[Any, Any]] = []  # (destroy, entity)
        self._task: TaskState | None = None
        self._scene: str | None = None

    @property
    def epoch(self) -> int:
        """The injector's epoch that the keys carry."""
        return self._encoder.epoch if self._encoder is not None else 0

    # --- transitions -------------------------------------------------------------------------

    def configure_stage(self) -> None:
        """Load the robot, warm up, subscribe."""
        limit_threads()
        self._robot = RobotModel.load(self.config.robot, self.config.joint_prefix)
        key, obstacles = warm_up(self.config, self._robot)
        self._key_writer = KeyWriter()
        self._key_writer.write(key, 0)
        self._obstacle_writer = ObstacleWriter()
        self._obstacle_writer.write(obstacles, 0)
        self._key_publisher = BytesPublisher(self, topics.TASK_KEY)
        self._owned.append((BytesPublisher.close, self._key_publisher))
        self._obstacle_publisher = BytesPublisher(self, topics.OBSTACLE_SPHERES)
        self._owned.append((BytesPublisher.close, self._obstacle_publisher))
        self._subscribe(topics.TASK_STATE, self._on_task)
        if self.config.scene_source == "topic":
            self._subscribe(topics.SCENE, self._on_scene)
        self._streams = EncoderStreams(self.plane, self.config, self)

    def activate_stage(self) -> None:
        """Start with an encoder that remembers nothing, and samples that come from now on."""
        self._encoder = KeyEncoder(self.config, self._robot, first_trace_id=_first_trace_id())
        self._warnings, self._events = Throttle(_WARNING_PERIOD), Throttle(_EVENT_PERIOD)
        self._task_taken: TaskState | None = None
        self._scene_taken: str | None = None
        self._period_ns = round(1e9 / self.config.key_rate)
        self._last_key_ns = self._woken_ns = self._key_published_ns = 0
        self._images = 0
        self._activated_ns = time.monotonic_ns()
        self._streams.restart()
        loop = DataLoop(
            self.plane,
            (self._streams.color,),
            self._on_wake,
            self.loop_failed,
            period_ns=self._period_ns,
            name="encoder",
        )
        self.start_beating_loop(loop)

    def deactivate_stage(self) -> None:
        """Nothing but the data loop works, and it has been stopped."""

    def cleanup_stage(self) -> None:
        """Destroy publishers and the latched subscription; readers go with the data plane."""
        for destroy, entity in self._owned:
            destroy(entity)
        self._owned.clear()
        self._encoder = self._task = None

    def _subscribe(self, topic: topics.Topic, callback: Callable[[Any], None]) -> None:
        subscription = self.create_subscription(topic.type, topic.name, callback, topic.profile())
        self._owned.append((self.destroy_subscription, subscription))

    def _on_task(self, message: TaskState) -> None:
        self._task = message

    def _on_scene(self, message: String) -> None:
        self._scene = message.data

    # --- the data thread ------------------------------------------------------------------------

    def _on_wake(self, now_ns: int) -> None:
        encoder, streams = self._encoder, self._streams
        assert encoder is not None  # made before the loop starts
        self._woken_ns = now_ns
        self._take_task(encoder)
        streams.take_joints(encoder)
        pair = streams.take_pair()
        if pair is not None:
            self._on_pair(encoder, *pair)
        if now_ns - self._last_key_ns >= _BODY_SHARE * self._period_ns:
            streams.take_body_inputs(encoder)
            self._on_period(encoder, streams.joint_origin)

    def _take_task(self, encoder: KeyEncoder) -> None:
        message = self._task
        if message is not None and message is not self._task_taken:
            self._task_taken = message
            encoder.on_task(task_state_from_msg(message))
        scene = self._scene
        if scene is not self._scene_taken:
            self._scene_taken = scene
            try:
                encoder.on_scene(scene)
            except InputError as error:
                self.event(EncodingError(f"scene refused: {error}"), topics.SCENE.name)

    def _on_pair(self, encoder: KeyEncoder, color: Frame, depth: Frame) -> None:
        try:
            pixels, distances = self._streams.decode(encoder, color, depth)
            origin = Origin(color.receipt_ns, color.origin_ns, color.time_ns)
            key = encoder.on_image(pixels, distances, origin, time.monotonic_ns())
        except EncodingError as error:
            self.event(error, "images" if isinstance(error, ImageError) else "joint_states")
            return
        if key is None:
            reason = encoder.perception.reason if encoder.perception is not None else ""
            self.event(ImageError(reason), "depth")
            return
        self._publish(key)
        if key.target_sight is not Sight.SEEN and encoder.perception is not None:
            self._say_unseen(key, encoder.perception.reason)
        self._images += 1
        every = self.config.obstacle_every
        if self._images % every == 1 % every:
            self._publish_obstacles(encoder, distances, key)

    def _say_unseen(self, key: TaskKey, reason: str) -> None:
        """Say why the newest image gives no target: once none is held, or none can be trusted."""
        if key.target_sight is Sight.CAMERA_MOVED:
            self.event(ImageError(reason), "camera_pose")
        elif key.target is None:
            self.warn("target", f"no target ({key.target_sight.name.lower()}): {reason}")

    def _on_period(self, encoder: KeyEncoder, origin: Origin | None) -> None:
        now = time.monotonic_ns()
        try:
            key = encoder.on_body(now, origin or Origin(0, 0, 0))
        except EncodingError as error:
            if now - self._activated_ns > _GRACE_NS:
                self.event(error, "joint_states")
            return
        self._publish(key)

    def _publish(self, key: TaskKey) -> None:
        self._key_published_ns = time.monotonic_ns()
        self._key_publisher.publish(self._key_writer.write(key, self._key_published_ns))
        self._last_key_ns = self._woken_ns

    def _publish_obstacles(self, encoder: KeyEncoder, depth: DepthImage, key: TaskKey) -> None:
        found = encoder.obstacles(depth, key)
        data = self._obstacle_writer.write(found, self._key_published_ns)
        self._obstacle_publisher.publish(data)

    # --- saying so ------------------------------------------------------------------------------

    def event(
        self, error: EncodingError, signal: str, *, value: float = math.nan, limit: float = math.nan
    ) -> None:
        """Publish a failure event, at most once a second for each signal."""
        if self._events.allows(signal, time.monotonic_ns()):
            self.report(
                error.error_code,
                str(error),
                detector="encoder",
                signal=signal,
                value=value,
                limit=limit,
            )

    def warn(self, name: str, text: str) -> None:
        """Log a warning, at most once in a few seconds for each name."""
        if self._warnings.allows(name, time.monotonic_ns()):
            self.get_logger().warning(text)


def _first_trace_id() -> int:
    """Return a start that differs between runs: wall clock seconds above 32 bits of count."""
    return (int(time.time()) & 0x7FFFFFFF) << 32


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the exit code."""
    return run(lambda: [TaskKeyEncoder()], arguments)


if __name__ == "__main__":
    raise SystemExit(main())
