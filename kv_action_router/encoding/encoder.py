"""Stage 1 without ROS: what the sensors say becomes one key.

encoder = KeyEncoder(config, robot)
encoder.set_camera(intrinsics)
encoder.joints.update(...)                      # whenever joint states come
key = encoder.on_image(color, depth, origin)    # a new RGB-D pair: all slices
key = encoder.on_body(now_ns, origin)           # 100 Hz: the body slice, the others held
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import (
    BODY_SLICE,
    KEY_SIZE,
    ROBOT_SLICE,
    SCENE_SLICE,
    TARGET_SLICE,
    FloatArray,
    ObstacleSpheres,
    Sight,
    TargetEstimate,
    TaskKey,
    TaskState,
    Trigger,
)
from kv_action_router.encoding import robot_slice, target_slice
from kv_action_router.encoding.backend import Perceiver, PerceptionBackend
from kv_action_router.encoding.body_slice import BodyEncoder
from kv_action_router.encoding.camera import Camera, Intrinsics
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.headers import Headers
from kv_action_router.encoding.images import ColorImage, DepthImage
from kv_action_router.encoding.inputs import BodyInputs
from kv_action_router.encoding.joints import JointMerger
from kv_action_router.encoding.obstacles import ObstacleFinder
from kv_action_router.encoding.odometry import OdometryEvent, OdometrySample
from kv_action_router.encoding.perception import Perception
from kv_action_router.encoding.robot import Robot
from kv_action_router.encoding.scene_name import SceneClassifier, check_scene, load_scenes
from kv_action_router.encoding.sharpness import SharpnessMeter
from kv_action_router.encoding.target_hold import TargetHold
from kv_action_router.errors import ImageError, InputError, KeyInvalidError

_NEVER = 3600.0  # [s] age of what was never measured: finite, and older than any limit


@dataclass(frozen=True, slots=True)
class Origin:
    """The sample that triggers a key.

    Attributes:
        receipt_ns: CLOCK_MONOTONIC at its receipt [ns].
        origin_ns: CLOCK_MONOTONIC at its source [ns].
        stamp_ns: header stamp, or the receipt on the wall clock where that cannot be trusted [ns].
    """

    receipt_ns: int
    origin_ns: int
    stamp_ns: int


class KeyEncoder:
    """Makes keys of one robot with one camera. Used by one thread.

    Invariant: every key is finite, and each slice has its own constant norm; only the target slice
    is zero, exactly while no target is known.

    Attributes:
        joints: merges the joint states; feed it directly.
        inputs: IMU, odometry and drive feedback.
        perception: answer of the newest image; None before the first.
        target: name of the target that the task acts on; empty = the first one.
    """

    def __init__(self, config: EncoderConfig, robot: Robot, first_trace_id: int = 1) -> None:
        """Prepare; ``first_trace_id`` keeps the trace ids of several runs apart.

        Raises:
            InputError: a required joint is unknown to the robot's model, or the file of scenes
                cannot be used.
            CheckpointError: the perception's weights cannot be used.
            ConfigError: what computes them is not installed.
        """
        self._config = config
        self._robot = robot
        required = tuple(name for name in config.required_joints if name) or robot.joint_names
        if unknown := [name for name in required if name not in robot.joint_names]:
            raise InputError("required_joints", f"among {robot.joint_names}", unknown)
        self._covers_robot = set(required) == set(robot.joint_names)
        # in the model's order, whatever the parameter's: the same pose is the same key
        ordered = tuple(name for name in robot.joint_names if name in required)
        limits = dict(zip(robot.joint_names, robot.velocity_limit, strict=True))
        self.joints = JointMerger(ordered, config.joint_timeout)
        self.inputs = BodyInputs(config, ordered)
        self.perception: Perception | None = None
        self.target = ""
        turning = dict(zip(robot.joint_names, robot.spindles.tolist(), strict=True))
        self._body = BodyEncoder(
            np.array([limits[n] for n in ordered]), [turning[n] for n in ordered]
        )
        self._hold = TargetHold(config.target_hold_limit, config.target_gone_frames)
        # what a key takes over as it is: robot, scene, and the target it was last encoded for
        self._held = np.zeros(KEY_SIZE, dtype=np.float32)
        self._held[ROBOT_SLICE] = robot_slice.encode(config.identity)
        self._held_target: TargetEstimate | None = None
        self._camera: Camera | None = None
        self._perceiver = Perceiver(config)
        self._finder: PerceptionBackend | None = None
        self._obstacles: ObstacleFinder | None = None
        self._meter = SharpnessMeter(config.target_radius)
        self._scene_receipt_ns: int | None = None
        self._spheres: FloatArray | None = None
        self._headers = Headers(config, self._perceiver.encoder_id, first_trace_id)
        self._classifier: SceneClassifier | None = None
        if config.scene_source == "slice":
            scenes = load_scenes(Path(config.scenes_file).expanduser())
            self._classifier = SceneClassifier(scenes, config.scene_minimum)

    # --- what is known of the task -----------------------------------------------------------

    def on_task(self, state: TaskState) -> None:
        """Take over the active intent, the decision that is asked for, and where it is made.

        Also which target is acted on: an estimate of another one is not held.
        """
        self._headers.on_task(state)
        self._meter.ask(wanted=state.needs_sharpness)
        if state.target != self.target:
            self.target = state.target
            self._hold.drop()
            if self._finder is not None:
                self._finder.look_for(self.target)

    def on_scene(self, name: str) -> None:
        """Take over a scene that was told from outside.

        Raises:
            InputError: it is no name; the scene stays as it was.
        """
        self._headers.on_scene(check_scene("scene", name))

    def on_epoch(self, epoch: int) -> None:
        """Take over the injector's epoch."""
        self._headers.on_epoch(epoch)

    @property
    def epoch(self) -> int:
        """The injector's epoch that the keys carry."""
        return self._headers.epoch

    # --- sensors -----------------------------------------------------------------------------

    def set_camera(self, intrinsics: Intrinsics) -> None:
        """Take over a calibration; nothing is rebuilt while it stays the same."""
        if self._camera is not None and self._camera.intrinsics == intrinsics:
            return
        config = self._config
        camera = Camera(intrinsics, config.camera_position, config.camera_orientation)
        self._camera = camera
        self._finder = self._perceiver.of(camera)
        self._finder.look_for(self.target)
        self._meter.camera = camera
        self._obstacles = ObstacleFinder(config, camera)

    @property
    def has_camera(self) -> bool:
        """Whether a calibration is known."""
        return self._camera is not None

    def on_odometry(self, sample: OdometrySample) -> OdometryEvent:
        """Take in odometry; after a jump the held target belongs to a frame that is no more."""
        event = self.inputs.on_odometry(sample)
        if event is OdometryEvent.JUMP:
            self._hold.drop()
        return event

    # --- keys --------------------------------------------------------------------------------

    def on_image(
        self, color: ColorImage, depth: DepthImage, origin: Origin, now_ns: int
    ) -> TaskKey | None:
        """Return the key of a new RGB-D pair; None when its depth holds nothing at all.

        Args:
            color: 8-bit RGB (height, width, 3).
            depth: [m] (height, width); NaN, Inf or 0 = not measured.
            origin: of the color image.
            now_ns: CLOCK_MONOTONIC [ns].

        Raises:
            ImageError: no calibration yet, or a size that is not its.
            MissingJointsError: naming the joints; the images have been taken in all the same.
        """
        if self._finder is None:
            raise ImageError("camera info: none received yet")
        found = self._finder.find(color, depth)
        self.perception = found
        if found.sight is Sight.NO_DEPTH:
            return None
        self._spheres = self._robot_spheres(now_ns)
        held = self._hold.held
        seen = found.target is not None and target_slice.reaches(found.target.pose.position)
        gone = not seen and held is not None and self._finder.place_is_empty(held, depth)
        scene = self._finder.scene(color, depth, self._spheres)
        self._meter.look(color, found.target)
        return self.on_sight(found.target, scene, origin, now_ns, gone=gone)

    def on_sight(
        self,
        target: TargetEstimate | None,
        scene: npt.NDArray[np.float32],
        origin: Origin,
        now_ns: int,
        *,
        gone: bool = False,
    ) -> TaskKey:
        """Return the key of an image that somebody else has looked at, e.g. another detector.

        Args:
            target: that was seen; None = hidden or absent.
            scene: scene slice (24,), of norm sqrt(0.25).
            origin: of the image.
            now_ns: CLOCK_MONOTONIC [ns].
            gone: the last estimate's place is in plain view, and empty.

        Raises:
            MissingJointsError: naming the joints; what was seen has been taken in all the same.
        """
        if target is not None and target_slice.reaches(target.pose.position):
            self._hold.seen(target, origin.receipt_ns)
        else:
            self._hold.not_seen(gone)
        self._held[SCENE_SLICE] = scene
        if self._classifier is not None:
            self._headers.on_scene(self._classifier.update(scene))
        self._scene_receipt_ns = origin.receipt_ns
        return self._key(Trigger.IMAGE, origin, now_ns)

    def on_body(self, now_ns: int, origin: Origin) -> TaskKey:
        """Return the key of the newest joint state; target and scene are held with their ages.

        Raises:
            MissingJointsError: naming the joints that were not seen within the timeout.
        """
        return self._key(Trigger.JOINT_STATE, origin, now_ns)

    def obstacles(self, depth: DepthImage, key: TaskKey) -> ObstacleSpheres:
        """Return the obstacles in the image pair that ``key`` was made from.

        Raises:
            ImageError: no calibration yet.
        """
        if self._obstacles is None:
            raise ImageError("camera info: none received yet")
        return self._obstacles.find(depth, key.decision, self._spheres, key.target)

    # --- inside --------------------------------------------------------------------------------

    def _key(self, trigger: Trigger, origin: Origin, now_ns: int) -> TaskKey:
        joints, inputs = self.joints, self.inputs
        sample = joints.sample(now_ns)
        velocity = sample.velocity
        if joints.velocity_estimated:
            velocity = np.where(joints.velocity_measured, velocity, np.nan)
        displacement = inputs.displacement(now_ns)
        trust = inputs.odometry_confidence
        body, masked = self._body.encode(
            sample.position,
            velocity,
            duty=inputs.duty(now_ns),
            displacement=displacement,
            odometry_confidence=trust,
            imu=inputs.imu(now_ns),
        )
        target, target_age = self._hold.current(now_ns)
        if target is not self._held_target:
            self._held[TARGET_SLICE] = _target_slice(target)
            self._held_target = target
        vector = self._held.copy()
        vector[BODY_SLICE] = body
        # the square of a key's norm is 2: it is finite exactly when all of the key is
        if not math.isfinite(vector.dot(vector)):
            raise KeyInvalidError(f"key must be finite, got {vector.tolist()}")
        seen_ns = self._scene_receipt_ns
        return TaskKey(
            decision=self._headers.next(origin.receipt_ns, origin.origin_ns, origin.stamp_ns),
            trigger=trigger,
            vector=vector,
            target=target,
            target_age=min(target_age, _NEVER),
            scene_age=_NEVER if seen_ns is None else (now_ns - seen_ns) * 1e-9,
            body_age=joints.age(now_ns),
            masked_inputs=int(masked),
            joints=sample,
            odometry_confidence=math.nan if displacement is None else trust,
            target_sight=Sight.UNKNOWN if self.perception is None else self.perception.sight,
            image_sharpness=self._meter.value,
        )

    def _robot_spheres(self, now_ns: int) -> FloatArray | None:
        """Return spheres around the robot; None while its pose is not known."""
        if not self._covers_robot or self.joints.missing(now_ns):
            return None
        return self._robot.link_spheres(self.joints.sample(now_ns).position)


def _target_slice(target: TargetEstimate | None) -> npt.NDArray[np.float32] | float:
    return 0.0 if target is None else target_slice.encode(target.pose.position, target.yaw)
