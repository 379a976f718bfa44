"""Stuck: motion that is commanded and does not happen."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kv_action_router.monitoring.detectors.motion import Motion
from kv_action_router.monitoring.signals import SignalTable

MOVED = 0.002  # [rad] a joint that went farther has moved


class _Standing(NamedTuple):
    """A joint that stands.

    Attributes:
        here: where it last moved to [rad].
        there: where its set-point was then [rad].
        apart: the least that they have been apart since, or since something might be touched [rad].
    """

    here: float
    there: float
    apart: float


class StuckDetector:
    """Writes how far the set-point of each joint went while the joint stood.

    ``stuck_distance`` [rad] counts from where the set-point was when the joint last moved by
    ``MOVED``. A joint that follows, however far behind, has moved and is at most that little
    stuck; how far behind it is is the tracking's to tell.

    ``jam_distance`` [rad] is how much farther from the joint the set-point has gone since then: a
    press that is let go of comes nearer. It counts, and is there, while the stage under way may
    touch nothing.
    """

    def __init__(self, spindles: Collection[str] = ()) -> None:
        """Leave joints out that work against what they turn."""
        self._spindles = frozenset(spindles)
        self._contact = False
        self._standing: dict[str, _Standing] = {}

    def reset(self) -> None:
        """Forget all joints."""
        self._standing.clear()
        self._contact = False

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_task(self, table: SignalTable, *, contact: bool) -> None:
        """Take whether the stage under way may touch something."""
        self._contact = contact
        if contact:
            table.forget("jam_distance")

    def on_feedback(self, motion: Motion, receipt_ns: int, table: SignalTable) -> None:
        """Take one feedback's motion.

        An injector that controls nothing leaves the arm where it is: counting begins anew after it.
        """
        standing = self._standing
        if not motion.controlled:
            if standing:
                standing.clear()
                table.forget("stuck_distance")
                table.forget("jam_distance")
            return
        for joint, here, there in zip(
            motion.joints, motion.position, motion.setpoint_position, strict=False
        ):
            if joint in self._spindles:
                continue
            apart = abs(there - here)
            since = standing.get(joint)
            if since is None or not -MOVED <= here - since.here <= MOVED:  # also after NaN
                standing[joint] = since = _Standing(here, there, apart)
            elif self._contact or apart < since.apart:
                standing[joint] = since = since._replace(apart=apart)
            table.put("stuck_distance", abs(there - since.there), receipt_ns, joint)
            if not self._contact:
                table.put("jam_distance", apart - since.apart, receipt_ns, joint)
