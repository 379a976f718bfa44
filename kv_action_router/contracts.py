"""What passes between the stages: frozen dataclasses and array layouts, laid out once.

Units are SI (rad, m, s, N m); NaN or an empty array means *not measured*. Times that end in
``_ns`` are
CLOCK_MONOTONIC nanoseconds unless the name says ``stamp``. Arrays inside a frozen dataclass are
never written after construction; a stage that changes one makes a new one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Float32Array = npt.NDArray[np.float32]
_NOT_MEASURED: FloatArray = np.zeros(0)

# --- key -----------------------------------------------------------------------------------

KEY_SIZE = 64
TARGET_SLICE = slice(0, 16)
SCENE_SLICE = slice(16, 40)
BODY_SLICE = slice(40, 56)
ROBOT_SLICE = slice(56, 64)
SUMMED_SLICE = slice(0, 56)  # the part that the weighted cosine runs over
ROBOT_SIZE = 8

SLICES = {"target": TARGET_SLICE, "scene": SCENE_SLICE, "body": BODY_SLICE}
SLICE_WEIGHTS = {"target": 0.5, "scene": 0.25, "body": 0.25}
SLICE_NORMS = {name: math.sqrt(weight) for name, weight in SLICE_WEIGHTS.items()}

INTENT_SIZE = 128

# --- chunk ---------------------------------------------------------------------------------

CHUNK_SAMPLES = 100
CHUNK_PERIOD = 0.0005  # [s]
CHUNK_DURATION = CHUNK_SAMPLES * CHUNK_PERIOD  # [s]
CONTINUATION_PERIOD = 0.020  # [s]
MATCH_VALIDITY_NS = 80_000_000  # continuations go on while the newest match is younger
TRIGGER_DEADLINE_NS = 15_000_000  # a chunk whose trigger is older is never executed

# --- execution value -----------------------------------------------------------------------

EXECUTION_SLOTS = 32
SLOT_NAMES: tuple[str, ...] = (
    "acceleration_trim_x",  # [m/s^2] written live by the injector from the IMU
    "acceleration_trim_y",  # [m/s^2]
    "acceleration_trim_z",  # [m/s^2]
    "proportional_gain",  # [N m/rad]
    "integral_gain",  # [N m/(rad s)]
    "derivative_gain",  # [N m s/rad]
    "integral_limit",  # [N m]
    "gravity_scale",  # share of the model's gravity torque that is fed forward
    "stage_effort_limit",  # [N m] normal saturation; ends the stage
    "stage_velocity_limit",  # [rad/s]
    "stage_force_limit",  # [N] at the tool
    "protective_effort_limit",  # [N m] invalidates the value
    "protective_velocity_limit",  # [rad/s]
    "protective_force_limit",  # [N] at the tool
    "torque_constant",  # [N m/A] at the joint
    "winding_resistance",  # [ohm] at 25 degC
    "temperature_coefficient",  # [1/K] of the winding resistance
    "temperature_limit",  # [degC] derate above
    "derating",  # share of the effort limits that is allowed now, 0 to 1
    "derated_share",  # value of derating once the temperature limit is crossed
    "coulomb_friction",  # [N m]
    "viscous_friction",  # [N m s/rad]
    "friction_velocity",  # [rad/s] width of the smooth sign function
    "backlash",  # [rad]
    "rated_current",  # [A]
    "stall_velocity",  # [rad/s] below it the drive counts as standing
    "stall_effort",  # [N m] above it a standing drive counts as stalled
    "wheel_jump_limit",  # [rad/s] change of wheel speed between two samples
    "search_offset_x",  # [m] learned offset of the perceived target
    "search_offset_y",  # [m]
    "search_offset_z",  # [m]
    "acceleration_limit",  # [rad/s^2]
)
SLOT: dict[str, int] = {name: index for index, name in enumerate(SLOT_NAMES)}

# --- enumerations shared with the messages ---------------------------------------------------


class Trigger(IntEnum):
    """Which sample caused a key (``TaskKey.TRIGGER_*``)."""

    IMAGE = 1
    JOINT_STATE = 2


class Sight(IntEnum):
    """What the newest image says of the target (``TaskKey.SIGHT_*``)."""

    UNKNOWN = 0  # no image yet
    SEEN = 1
    HIDDEN = 2  # something is like the target, but too little is visible to say where it is
    ABSENT = 3  # nothing in view is like the target; it may be hidden altogether
    NO_DEPTH = 4  # the depth image has no valid point
    CAMERA_MOVED = 5  # the work surface is not where the camera's pose says


class MissReason(IntEnum):
    """Why there is no hit (``CacheMatch.MISS_*``)."""

    NONE = 0
    EMPTY = 1
    SIMILARITY = 2
    TARGET = 3
    GUARD = 4
    CONFIDENCE = 5
    NO_TARGET = 6
    INVALID_KEY = 7
    NO_TASK = 8


class ChunkKind(IntEnum):
    """What made a chunk (``TrajectoryChunk.KIND_*``)."""

    DECISION = 1
    REFRESH = 2
    CONTINUATION = 3


class InjectorState(IntEnum):
    """What the injector does (``ExecutionFeedback.STATE_*``)."""

    INACTIVE = 0
    HOLD = 1
    FOLLOW = 2
    RAMP = 3
    FAIL_SAFE = 4
    STOPPED = 5


class InjectorEvent(IntEnum):
    """Why a feedback was sent (``ExecutionFeedback.EVENT_*``)."""

    NONE = 0
    CHUNK_ADOPTED = 1
    CHUNK_LATE = 2
    CHUNK_EPOCH = 3
    CHUNK_ORDER = 4
    CHUNK_INVALID = 5
    STARVED = 6
    FAIL_SAFE = 7
    STOPPED = 8
    RELEASED = 9
    ACTIVATED = 10
    DRIVE = 11


class UpdateOperation(IntEnum):
    """What an entry update does (``EntryUpdate.OPERATION_*``)."""

    INSERT = 1
    SUCCESS = 2
    FAILURE = 3
    REVISE = 4
    EXECUTION = 5


class TaskStatus(IntEnum):
    """State of the task under way (``TaskState.STATUS_*``)."""

    IDLE = 0
    RUNNING = 1
    INTERRUPTED = 2
    STOPPING = 3
    SUCCEEDED = 4
    FAILED = 5
    CANCELED = 6


class DecisionReason(IntEnum):
    """Why a decision is asked for (``TaskState.DECISION_*``)."""

    NONE = 0
    STAGE_ENTRY = 1
    INVALIDATED = 2
    RESUMED = 3


class Stage(IntEnum):
    """Index into ``Decision.stage_ns`` (``DecisionHeader.STAGE_*``)."""

    ORIGIN = 0
    KEY = 1
    MATCH = 2
    CHUNK = 3
    COMMAND = 4


# --- what travels --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Decision:
    """What travels with every decision (``DecisionHeader``)."""

    trace_id: int = 0
    trigger_monotonic_ns: int = 0
    stage_ns: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    sequence: int = 0
    epoch: int = 0
    decision_id: int = 0
    domain: str = ""
    source_domain: str = ""
    robot_id: str = ""
    encoder_id: str = ""
    scene: str = ""
    intent_id: str = ""
    stamp_ns: int = 0  # header stamp of the trigger sample: orders and correlates only
    frame_id: str = ""

    def numbered(
        self,
        *,
        trace_id: int,
        trigger_monotonic_ns: int,
        stage_ns: tuple[int, int, int, int, int],
        sequence: int,
        epoch: int,
        decision_id: int,
        stamp_ns: int,
    ) -> Decision:
        """Return the same texts with other numbers; a third of what ``replace`` costs."""
        return Decision(
            trace_id,
            trigger_monotonic_ns,
            stage_ns,
            sequence,
            epoch,
            decision_id,
            self.domain,
            self.source_domain,
            self.robot_id,
            self.encoder_id,
            self.scene,
            self.intent_id,
            stamp_ns,
            self.frame_id,
        )

    def at_stage(self, stage: Stage, monotonic_ns: int) -> tuple[int, int, int, int, int]:
        """Return ``stage_ns`` with one time filled in."""
        times = list(self.stage_ns)
        times[stage] = monotonic_ns
        return (times[0], times[1], times[2], times[3], times[4])


@dataclass(frozen=True, slots=True)
class JointSample:
    """One joint state, merged by name.

    Attributes:
        names: joints, in the robot model's order (n).
        position: [rad] (n,).
        velocity: [rad/s] (n,); NaN where not measured.
        effort: [N m] (n,); NaN where not measured.
        receipt_ns: CLOCK_MONOTONIC of the receipt of the newest part [ns].
        stamp_ns: header stamp of the newest part [ns].
    """

    names: tuple[str, ...]
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    receipt_ns: int
    stamp_ns: int = 0


class JointReading(NamedTuple):
    """One joint state as it came in: joints in its own order, plain numbers.

    Attributes:
        names: joints (n).
        position: [rad] (n,) or empty.
        velocity: [rad/s] (n,) or empty.
        effort: [N m] (n,) or empty.
        stamp_ns: header stamp [ns].
        receipt_ns: CLOCK_MONOTONIC of the receipt [ns].
    """

    names: Sequence[str]
    position: Sequence[float]
    velocity: Sequence[float]
    effort: Sequence[float]
    stamp_ns: int
    receipt_ns: int

    @staticmethod
    def of(sample: JointSample) -> JointReading:
        """Return a sample as a reading."""
        return JointReading(
            sample.names,
            sample.position.tolist(),
            sample.velocity.tolist(),
            sample.effort.tolist(),
            sample.stamp_ns,
            sample.receipt_ns,
        )


@dataclass(frozen=True, slots=True)
class Pose:
    """A pose in the robot's base frame: position [m] (3,), unit quaternion x, y, z, w (4,)."""

    position: FloatArray = field(default_factory=lambda: np.zeros(3))
    orientation: FloatArray = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 1.0]))


@dataclass(frozen=True, slots=True)
class TargetEstimate:
    """The thing to act on: pose in the base frame and its covariance.

    ``covariance`` is (6, 6) [m^2, rad^2], in the order x, y, z, roll, pitch, yaw (REP 103).
    """

    pose: Pose
    covariance: FloatArray

    @property
    def yaw(self) -> float:
        """Rotation about the base frame's z axis [rad]."""
        x, y, z, w = self.pose.orientation
        return math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


@dataclass(frozen=True, slots=True)
class TaskKey:
    """Present situation as a key (``TaskKey``). ``vector`` is float32 (64,); ages in s.

    ``target_sight`` is of the newest image; a target that is not seen is held for a while.
    ``odometry_confidence`` is the share that the odometry has, 0 to 1; NaN = there is none.
    ``image_sharpness`` is of the newest image, around the target; NaN = nobody asked for it, or the
    target was not in it.
    """

    decision: Decision
    trigger: Trigger
    vector: Float32Array
    target: TargetEstimate | None
    target_age: float
    scene_age: float
    body_age: float
    masked_inputs: int
    joints: JointSample
    odometry_confidence: float = math.nan
    target_sight: Sight = Sight.UNKNOWN
    image_sharpness: float = math.nan


@dataclass(frozen=True, slots=True)
class BehaviorValue:
    """How to do it: a clamped B-spline in time over named columns (``BehaviorValue``).

    Attributes:
        subtask: name and version, e.g. ``touch_approach_v1``.
        dimensions: ``joint/interface`` of each column (d).
        degree: of the spline (k).
        knots: [s] (n + k + 1,), starting at 0.
        coefficients: (n, d).
        phase: share of the motion that is done, 0 to 1.
        decay: per-dimension decay factor (d,), 0 to 1.
        target: pose that the coefficients reach, base frame; None = acts on no target.
    """

    subtask: str
    dimensions: tuple[str, ...]
    degree: int
    knots: FloatArray
    coefficients: FloatArray
    phase: float
    decay: FloatArray
    target: Pose | None


@dataclass(frozen=True, slots=True)
class CacheMatch:
    """Answer to a key (``CacheMatch``); on a miss ``behavior`` is None."""

    decision: Decision
    trigger: Trigger
    hit: bool
    is_decision: bool
    miss_reason: MissReason
    reason: str
    similarity: float
    threshold: float
    margin: float
    target_similarity: float
    target_minimum: float
    worst_slice: str
    worst_slice_similarity: float
    guard: str
    entry_id: int
    entry_version: int
    subtask: str
    behavior: BehaviorValue | None
    target: TargetEstimate | None
    target_age: float
    vector: Float32Array
    joints: JointSample


class MatchGlance(NamedTuple):
    """A look at a match.

    Attributes:
        decision_id: that it answers, or that is in force; 0 = none.
        trigger_monotonic_ns: CLOCK_MONOTONIC at the receipt of the trigger sample [ns].
        published_ns: CLOCK_MONOTONIC when it was published [ns]; 0 = not told.
        trigger: which sample caused it.
        hit: it carries a behavior.
        is_decision: it answers a decision.
    """

    decision_id: int
    trigger_monotonic_ns: int
    published_ns: int
    trigger: Trigger
    hit: bool
    is_decision: bool


@dataclass(frozen=True, slots=True)
class AuxiliaryOutput:
    """One timed output beside the motion: ``time`` after the anchor [s]."""

    name: str
    time: float
    value: float


@dataclass(frozen=True, slots=True)
class TrajectoryChunk:
    """50 ms of motion (``TrajectoryChunk``): ``samples`` is (100, len(columns)), C order.

    Columns are named ``joint/interface``. Column order is free; the injector maps by name.
    """

    decision: Decision
    kind: ChunkKind
    anchor_ns: int
    columns: tuple[str, ...]
    samples: FloatArray
    auxiliary: tuple[AuxiliaryOutput, ...]
    entry_id: int
    entry_version: int
    task: str
    stage: str
    phase: float
    ends_at_rest: bool


@dataclass(frozen=True, slots=True)
class ExecutionValue:
    """What the drives may do (``ExecutionValue``): ``slots`` is float32 (len(drives), 32)."""

    drives: tuple[str, ...]
    slots: Float32Array
    confident: npt.NDArray[np.bool_]
    version: int
    base_version: int
    provenance: str = ""
    decision: Decision = Decision()


@dataclass(frozen=True, slots=True)
class EntryUpdate:
    """What execution teaches the cache (``EntryUpdate``)."""

    decision: Decision
    operation: UpdateOperation
    entry_id: int
    entry_version: int
    vector: Float32Array
    behavior: BehaviorValue | None
    execution: ExecutionValue | None
    error: float
    false_hit: bool
    reason: str


@dataclass(frozen=True, slots=True)
class TaskState:
    """The task under way (``TaskState``); ``intent`` is float32 (128,) or empty.

    ``target`` is which of the encoder's targets the task acts on; empty = its first.
    """

    decision: Decision
    status: TaskStatus
    task: str
    goal_id: str
    stage: str
    stage_index: int
    stage_count: int
    subtask: str
    phase: float
    intent: Float32Array
    decision_reason: DecisionReason
    needs_target: bool
    needs_image: bool
    requested_monotonic_ns: int
    allowed_contact: str
    target: str = ""
    needs_sharpness: bool = False


@dataclass(frozen=True, slots=True)
class StageCondition:
    """A physical condition of the stage under way (``StageCondition``)."""

    task: str
    goal_id: str
    stage: str
    decision_id: int
    condition: str
    is_failure: bool
    signal: str
    value: float
    limit: float
    held: float
    monotonic_ns: int


@dataclass(frozen=True, slots=True)
class ObstacleSpheres:
    """At most 256 free-standing obstacles: center (n, 3) [m] in the base frame, radius (n,) [m]."""

    decision: Decision
    center: Float32Array
    radius: Float32Array

    MAXIMUM = 256


class SeenObstacles(NamedTuple):
    """Obstacles as whoever tests motions wants them.

    Attributes:
        spheres: x, y, z, radius [m], robot's base frame (n, 4).
        seen_ns: CLOCK_MONOTONIC at the receipt of the image [ns].
    """

    spheres: FloatArray
    seen_ns: int

    @staticmethod
    def of(obstacles: ObstacleSpheres) -> SeenObstacles:
        """Return what a message says."""
        spheres = np.column_stack((obstacles.center, obstacles.radius)).astype(float)
        return SeenObstacles(spheres, obstacles.decision.trigger_monotonic_ns)


@dataclass(frozen=True, slots=True)
class DriveSample:
    """Feedback of the drives (``DriveState``): arrays (n,) or empty where not measured."""

    names: tuple[str, ...]
    temperature: FloatArray
    current: FloatArray
    rated_current: FloatArray
    duty: FloatArray
    wheel_speed: FloatArray
    braked: npt.NDArray[np.bool_]
    receipt_ns: int
    voltage: FloatArray = field(default_factory=lambda: _NOT_MEASURED)


@dataclass(frozen=True, slots=True)
class ImuSample:
    """One IMU sample; a part that is not measured is NaN (REP 145: covariance[0] = -1).

    orientation: x, y, z, w (4,); angular_velocity [rad/s] (3,); linear_acceleration [m/s^2] (3,).
    """

    orientation: FloatArray
    angular_velocity: FloatArray
    linear_acceleration: FloatArray
    receipt_ns: int


@dataclass(frozen=True, slots=True)
class ExecutionFeedback:
    """What the injector does (``ExecutionFeedback``); arrays are (n_joints,).

    ``joint_monotonic_ns`` is the receipt of the joint state that was measured; 0 = none yet.
    """

    decision: Decision
    state: InjectorState
    event: InjectorEvent
    reason: str
    monotonic_ns: int
    epoch: int
    chunk_sequence: int
    phase: float
    joints: tuple[str, ...]
    position: FloatArray
    velocity: FloatArray
    setpoint_position: FloatArray
    setpoint_velocity: FloatArray
    command: FloatArray
    command_interface: str
    confident: npt.NDArray[np.bool_]
    execution_version: int
    joint_monotonic_ns: int = 0
