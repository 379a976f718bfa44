"""Tracking: how far the arm is from its set-point, how fast it moves, and how far the motion is."""

from __future__ import annotations

import math

from kv_action_router.contracts import ExecutionFeedback, FloatArray, InjectorState
from kv_action_router.monitoring.signals import SignalTable

_CONTROLLED = (InjectorState.HOLD, InjectorState.FOLLOW, InjectorState.RAMP)


class TrackingDetector:
    """Writes ``tracking_error`` of each joint, and speeds and phase of the whole motion.

    An injector that controls nothing (inactive, stopped, fail-safe) has no tracking error: the
    arm may then be anywhere.
    """

    def reset(self) -> None:
        """Nothing is kept."""

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_feedback(self, feedback: ExecutionFeedback, receipt_ns: int, table: SignalTable) -> None:
        """Take one feedback."""
        table.put("joint_speed", _largest(feedback.velocity), receipt_ns)
        table.put("setpoint_speed", _largest(feedback.setpoint_velocity), receipt_ns)
        table.put("motion_phase", feedback.phase, receipt_ns)
        if feedback.state not in _CONTROLLED or len(feedback.setpoint_position) != len(
            feedback.position
        ):
            table.forget("tracking_error")
            return
        wanted, measured = feedback.setpoint_position.tolist(), feedback.position.tolist()
        for joint, there, here in zip(feedback.joints, wanted, measured, strict=False):
            table.put("tracking_error", abs(there - here), receipt_ns, joint)


def _largest(values: FloatArray) -> float:
    """Largest magnitude; NaN when there is none or one of them is NaN."""
    magnitudes = list(map(abs, values.tolist()))
    if not magnitudes or math.isnan(sum(magnitudes)):
        return math.nan
    return max(magnitudes)
