"""The physical signals that conditions may name: one table for tasks, monitoring and docs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SignalInfo:
    """What a signal means.

    Attributes:
        unit: SI unit; empty = a share or a count.
        source: stream that the signal is made from.
        each: what there is a value for each of (joint, drive, node, topic, layer); empty = one.
        stale_after_ms: an older value counts as not measured [ms]; a few periods of its stream.
        description: a clause in lower case.
    """

    unit: str
    source: str
    stale_after_ms: float
    description: str
    each: str = ""


SHARPNESS = "image_sharpness"  # the encoder measures it only where a stage judges it
DRIVE_STATE = "drive_state"  # source of what the injector measures too

_WRENCH_MS = 15.0  # 500 Hz stream
_FEEDBACK_MS = 50.0  # 100 Hz stream
_DRIVE_MS = 100.0  # 50 Hz stream
_MONITOR_MS = 50.0  # ages, which the monitor measures itself
_COUNT_MS = 200.0  # counts of the last second
_VISION_MS = 500.0  # obstacles 10 Hz, and judged anew while the arm moves
_CACHE_MS = 2_000.0  # 2 Hz stream

SIGNALS: dict[str, SignalInfo] = {
    "wrench_force": SignalInfo(
        "N", "wrench", _WRENCH_MS, "force at the tool, norm of the measurement minus its tare"
    ),
    "wrench_torque": SignalInfo(
        "N m", "wrench", _WRENCH_MS, "torque at the tool, norm of the measurement minus its tare"
    ),
    "force_drop": SignalInfo(
        "N",
        "wrench",
        _WRENCH_MS,
        "largest fall of the force at the tool since the stage's motion began",
    ),
    "motion_phase": SignalInfo(
        "", "execution_feedback", _FEEDBACK_MS, "share of the stage's motion that is done, 0 to 1"
    ),
    "joint_speed": SignalInfo(
        "rad/s", "execution_feedback", _FEEDBACK_MS, "largest measured joint speed"
    ),
    "setpoint_speed": SignalInfo(
        "rad/s", "execution_feedback", _FEEDBACK_MS, "largest joint speed of the set-point"
    ),
    "tracking_error": SignalInfo(
        "rad",
        "execution_feedback",
        _FEEDBACK_MS,
        "distance of set-point and measurement while the injector controls the joint",
        "joint",
    ),
    "drive_temperature": SignalInfo(
        "degC",
        DRIVE_STATE,
        _DRIVE_MS,
        "as reported; impossible values are not measured",
        "drive",
    ),
    "drive_current": SignalInfo("A", DRIVE_STATE, _DRIVE_MS, "magnitude of the current", "drive"),
    "drive_load": SignalInfo("", DRIVE_STATE, _DRIVE_MS, "current over rated current", "drive"),
    "wheel_speed": SignalInfo(
        "rad/s", DRIVE_STATE, _DRIVE_MS, "encoder speed of a wheel's drive", "drive"
    ),
    "stall_load": SignalInfo(
        "",
        "drive_state and execution_feedback",
        _DRIVE_MS,
        "current over rated current of a drive whose joint stands still; 0 while it moves",
        "drive",
    ),
    "stuck_distance": SignalInfo(
        "rad",
        "execution_feedback",
        _FEEDBACK_MS,
        "way of the set-point since the joint last moved, while the injector controls it",
        "joint",
    ),
    "jam_distance": SignalInfo(
        "rad",
        "execution_feedback",
        _FEEDBACK_MS,
        "what the set-point went away from the joint since that last moved; only where a stage"
        " may touch nothing",
        "joint",
    ),
    "grip_force": SignalInfo(
        "N",
        "drive_state of the gripper",
        _DRIVE_MS,
        "force of the gripper: its drive's current times its force constant, where there is one",
    ),
    "spindle_torque": SignalInfo(
        "N m", "execution_feedback", _FEEDBACK_MS, "magnitude of the torque asked of the spindle"
    ),
    "spindle_speed": SignalInfo(
        "rad/s", "execution_feedback", _FEEDBACK_MS, "measured speed of the spindle, magnitude"
    ),
    "contact_depth": SignalInfo(
        "m",
        "wrench and execution_feedback",
        _FEEDBACK_MS,
        "way of the tip along the tool since it met resistance, in stages that may touch something",
    ),
    "clearance": SignalInfo(
        "m",
        "obstacle_spheres and execution_feedback",
        _VISION_MS,
        "distance of the nearest obstacle from what the arm sweeps before it could stand still",
    ),
    "odometry_confidence": SignalInfo(
        "",
        "task_key",
        _VISION_MS,
        "share that the odometry has in keys, 0 to 1; it falls while the wheels slip",
    ),
    "image_age": SignalInfo(
        "s", "task_key", _MONITOR_MS, "age of the newest image that the encoder has used"
    ),
    "target_age": SignalInfo(
        "s",
        "task_key",
        _MONITOR_MS,
        "age of the newest image that showed the target, while a stage acts on it",
    ),
    SHARPNESS: SignalInfo(
        "",
        "task_key",
        _VISION_MS,
        "how sharp the target's surroundings are in the newest image, in stages that ask for it",
    ),
    "key_age": SignalInfo("s", "task_key", _MONITOR_MS, "time since the newest key was received"),
    "heartbeat_age": SignalInfo(
        "s", "heartbeats", _MONITOR_MS, "silence of a node that is active", "node"
    ),
    "node_absence": SignalInfo(
        "s",
        "heartbeats",
        _MONITOR_MS,
        "the same of a node that is not active, or not there",
        "node",
    ),
    "stamp_faults": SignalInfo(
        "",
        "header stamps",
        _COUNT_MS,
        "stamps of the last second that were zero, repeated, went back, or far from the clock",
        "topic",
    ),
    "missed_ticks": SignalInfo(
        "",
        "execution_feedback",
        _COUNT_MS,
        "periods of the control loop that were skipped in the last second",
    ),
    "loop_lateness": SignalInfo(
        "s",
        "execution_feedback",
        _COUNT_MS,
        "99th percentile of the control loop's wake-up lateness over the last second",
    ),
    "hit_rate_decay": SignalInfo(
        "",
        "cache_manager/statistics",
        _CACHE_MS,
        "share by which the hit rate of the newest decisions is below its long-term value",
        "layer",
    ),
    "deadline_misses": SignalInfo(
        "",
        "DDS events",
        _COUNT_MS,
        "missed deadlines of the last second, while the topic's writer should be at work",
        "topic",
    ),
    "lease_losses": SignalInfo(
        "",
        "DDS events",
        _COUNT_MS,
        "liveliness leases that ran out in the last second, while the writer should be at work",
        "topic",
    ),
    "incompatible_qos": SignalInfo(
        "", "DDS events", _COUNT_MS, "writers whose profile this reader refuses", "topic"
    ),
}
