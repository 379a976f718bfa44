"""Stuck: motion that is commanded and does not happen."""

from __future__ import annotations

from collections.abc import Collection

from kv_action_router.monitoring.detectors.motion import Motion
from kv_action_router.monitoring.signals import SignalTable

MOVED = 0.002  # [rad] a joint that went farther has moved


class StuckDetector:
    """Writes ``stuck_distance`` [rad] of each joint: how far its set-point went while it stood.

    The way is counted from where the set-point was when the joint last moved by ``MOVED``. A joint
    that follows, however far behind, has moved and is at most that little stuck; how far behind it
    is is the tracking's to tell.
    """

    def __init__(self, spindles: Collection[str] = ()) -> None:
        """Leave joints out that work against what they turn."""
        self._spindles = frozenset(spindles)
        # joint -> where it was, and where its set-point was, when it last moved [rad]
        self._last: dict[str, tuple[float, float]] = {}

    def reset(self) -> None:
        """Forget all joints."""
        self._last.clear()

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_feedback(self, motion: Motion, receipt_ns: int, table: SignalTable) -> None:
        """Take one feedback's motion.

        An injector that controls nothing leaves the arm where it is: counting begins anew after it.
        """
        last = self._last
        if not motion.controlled:
            if last:
                last.clear()
                table.forget("stuck_distance")
            return
        for joint, here, there in zip(
            motion.joints, motion.position, motion.setpoint_position, strict=False
        ):
            if joint in self._spindles:
                continue
            before = last.get(joint)
            if before is None or not -MOVED <= here - before[0] <= MOVED:  # also after NaN
                last[joint] = before = here, there
            table.put("stuck_distance", abs(there - before[1]), receipt_ns, joint)
