"""Odometry as a displacement over a short window, with jumps and gaps kept out.

A pose that odometry integrates drifts without bound, so two visits of one place would never give
the same key; the displacement over the last second does not. A jump (relocalization, a lift)
empties the window: motion measured before and after it belongs to two frames.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import Enum

import numpy as np

from kv_action_router.contracts import FloatArray


@dataclass(frozen=True, slots=True)
class OdometrySample:
    """One odometry sample of a base that moves in a plane.

    x, y [m] and yaw [rad] in the odometry frame; speed forward [m/s] and yaw_rate [rad/s] as the
    wheels say; NaN = not measured.
    """

    x: float
    y: float
    yaw: float
    speed: float
    yaw_rate: float
    receipt_ns: int


class OdometryEvent(Enum):
    """What a sample did to the window."""

    TAKEN = "taken"
    INVALID = "not finite"
    JUMP = "jump"
    OLD = "not newer"


class OdometryWindow:
    """The last second of a base's path. The window holds samples of one frame only."""

    def __init__(self, window: float, jump: float) -> None:
        """Keep ``window`` [s]; two samples farther apart than ``jump`` [m] are a jump."""
        self._window_ns = int(window * 1e9)
        self._jump = jump
        self._samples: deque[OdometrySample] = deque(maxlen=1024)
        self.jump_length = 0.0  # of the last jump [m]

    def update(self, sample: OdometrySample) -> OdometryEvent:
        """Take in a sample; a jump starts a new window with it."""
        if not (math.isfinite(sample.x) and math.isfinite(sample.y) and math.isfinite(sample.yaw)):
            return OdometryEvent.INVALID
        samples = self._samples
        event = OdometryEvent.TAKEN
        if samples:
            last = samples[-1]
            if sample.receipt_ns <= last.receipt_ns:
                return OdometryEvent.OLD
            length = math.hypot(sample.x - last.x, sample.y - last.y)
            if length > self._jump:
                samples.clear()
                self.jump_length = length
                event = OdometryEvent.JUMP
        samples.append(sample)
        while len(samples) > 2 and sample.receipt_ns - samples[1].receipt_ns >= self._window_ns:
            samples.popleft()
        return event

    def displacement(self, now_ns: int, timeout: float) -> FloatArray | None:
        """Return x, y [m] and yaw [rad] (3,) since the window's start, in the base's frame of then.

        None with fewer than two samples, or when the newest is older than ``timeout`` [s].
        """
        samples = self._samples
        if len(samples) < 2 or now_ns - samples[-1].receipt_ns > timeout * 1e9:
            return None
        first, last = samples[0], samples[-1]
        dx, dy = last.x - first.x, last.y - first.y
        cosine, sine = math.cos(first.yaw), math.sin(first.yaw)
        return np.array(
            [
                cosine * dx + sine * dy,
                cosine * dy - sine * dx,
                math.remainder(last.yaw - first.yaw, 2.0 * math.pi),
            ]
        )
