"""Tracking: how far the arm is from its set-point, how fast it moves, and how far the motion is."""

from __future__ import annotations

import math
from collections.abc import Collection

from kv_action_router.monitoring.detectors.motion import Motion
from kv_action_router.monitoring.signals import SignalTable


class TrackingDetector:
    """Writes ``tracking_error`` of each joint, and speeds and phase of the whole motion.

    An injector that controls nothing (inactive, stopped, fail-safe) has no tracking error: the
    arm may then be anywhere.
    """

    def __init__(self, spindles: Collection[str] = ()) -> None:
        """Leave joints out that work against what they turn."""
        self._spindles = frozenset(spindles)

    def reset(self) -> None:
        """Nothing is kept."""

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_feedback(self, motion: Motion, receipt_ns: int, table: SignalTable) -> None:
        """Take one feedback's motion."""
        table.put("joint_speed", _largest(motion.velocity), receipt_ns)
        table.put("setpoint_speed", _largest(motion.setpoint_velocity), receipt_ns)
        table.put("motion_phase", motion.phase, receipt_ns)
        if not motion.controlled:
            table.forget("tracking_error")
            return
        for joint, there, here in zip(
            motion.joints, motion.setpoint_position, motion.position, strict=False
        ):
            if joint in self._spindles:
                continue
            table.put("tracking_error", abs(there - here), receipt_ns, joint)


def _largest(values: list[float]) -> float:
    """Largest magnitude; NaN when there is none or one of them is NaN."""
    magnitudes = list(map(abs, values))
    if not magnitudes or math.isnan(sum(magnitudes)):
        return math.nan
    return max(magnitudes)
