"""Stall: a drive that pushes and does not move."""

from __future__ import annotations

import math

from kv_action_router.contracts import DriveSample
from kv_action_router.monitoring.detectors.motion import Motion
from kv_action_router.monitoring.signals import SignalTable

MOVES = 0.02  # [rad/s] a joint that is faster moves ...
STANDS = 0.01  # [rad/s] ... and stands again below this


class StallDetector:
    """Writes ``stall_load`` of each drive: its load while its joint stands still, else 0.

    A joint counts as moving from ``MOVES`` on, and as standing again below ``STANDS``, so that
    noise of its speed makes nothing flicker. A drive whose joint's speed is not measured has no
    value.
    """

    def __init__(self) -> None:
        self._moving: dict[str, bool] = {}

    def reset(self) -> None:
        """Forget all joints."""
        self._moving.clear()

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_feedback(self, motion: Motion) -> None:
        """Take one feedback's motion."""
        moving = self._moving
        for joint, speed in zip(motion.joints, motion.velocity, strict=False):
            if -STANDS < speed < STANDS:
                moving[joint] = False
            elif speed >= MOVES or speed <= -MOVES:
                moving[joint] = True
            elif speed != speed:
                moving.pop(joint, None)

    def on_drives(self, sample: DriveSample, table: SignalTable) -> None:
        """Take the feedback of the drives."""
        size = len(sample.names)
        if len(sample.current) != size or len(sample.rated_current) != size:
            return
        for drive, current, rated in zip(
            sample.names, sample.current.tolist(), sample.rated_current.tolist(), strict=True
        ):
            moving = self._moving.get(drive)
            if moving is None or not (rated > 0.0 and math.isfinite(current / rated)):
                table.forget("stall_load", drive)
            else:
                load = 0.0 if moving else abs(current) / rated
                table.put("stall_load", load, sample.receipt_ns, drive)
