"""The physical signals that conditions may name: one table for tasks, monitoring and docs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SignalInfo:
    """What a signal means.

    Attributes:
        unit: SI unit; empty = a share or a count.
        source: stream that the signal is made from.
        stale_after_ms: an older value counts as not measured [ms]; a few periods of its stream.
        description: a clause in lower case.
    """

    unit: str
    source: str
    stale_after_ms: float
    description: str


_WRENCH_MS = 15.0  # 500 Hz stream
_FEEDBACK_MS = 50.0  # 100 Hz stream
_DRIVE_MS = 100.0  # 50 Hz stream
_KEY_MS = 500.0  # ages are carried on between two keys, so silence shows as age, not as absence

SIGNALS: dict[str, SignalInfo] = {
    "wrench_force": SignalInfo(
        "N", "wrench", _WRENCH_MS, "force at the tool, norm of the measurement minus its tare"
    ),
    "wrench_torque": SignalInfo(
        "N m", "wrench", _WRENCH_MS, "torque at the tool, norm of the measurement minus its tare"
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
        "rad", "execution_feedback", _FEEDBACK_MS, "largest distance of set-point and measurement"
    ),
    "drive_temperature": SignalInfo("degC", "drive_state", _DRIVE_MS, "of the hottest drive"),
    "drive_current": SignalInfo("A", "drive_state", _DRIVE_MS, "largest current of a drive"),
    "drive_load": SignalInfo(
        "", "drive_state", _DRIVE_MS, "largest current of a drive over its rated current"
    ),
    "image_age": SignalInfo("s", "task_key", _KEY_MS, "age of the image behind the target slice"),
    "key_age": SignalInfo("s", "task_key", _KEY_MS, "time since the newest key was received"),
}
