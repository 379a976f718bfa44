"""Contact: force and torque at the tool, free of the sensor's bias and the tool's weight."""

from __future__ import annotations

import math

import numpy as np

from kv_action_router.monitoring.samples import WrenchSample
from kv_action_router.monitoring.signals import SignalTable

_WINDOW = 16  # samples that a tare is the mean of: 32 to 64 ms of a 500 Hz stream
_WINDOW_NS = 100_000_000  # older samples are of another situation


class ContactDetector:
    """Writes ``wrench_force`` [N] and ``wrench_torque`` [N m].

    Both are the norm of the measured vector minus the tare's, so that a bias or the tool's weight
    in one direction hides no contact in another. Before the first tare nothing is measured (NaN).
    """

    def __init__(self) -> None:
        self._ring = np.zeros((_WINDOW, 6))
        self._receipt_ns = np.zeros(_WINDOW, dtype=np.int64)
        self._tare: list[float] = [0.0] * 6
        self._next = 0
        self._filled = 0
        self.has_tare = False

    def reset(self) -> None:
        """Forget samples and tare."""
        self._filled = 0
        self._next = 0
        self.has_tare = False

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_wrench(self, sample: WrenchSample, table: SignalTable) -> None:
        """Take a sample; one that is not finite is written as not measured."""
        if not all(map(math.isfinite, sample.values)):
            table.put("wrench_force", math.nan, sample.receipt_ns)
            table.put("wrench_torque", math.nan, sample.receipt_ns)
            return
        self._ring[self._next] = sample.values
        self._receipt_ns[self._next] = sample.receipt_ns
        self._next = (self._next + 1) % _WINDOW
        self._filled = min(self._filled + 1, _WINDOW)
        force = torque = math.nan
        if self.has_tare:
            # Plain floats: six of them are faster than an array of six.
            force = math.dist(sample.values[:3], self._tare[:3])
            torque = math.dist(sample.values[3:], self._tare[3:])
        table.put("wrench_force", force, sample.receipt_ns)
        table.put("wrench_torque", torque, sample.receipt_ns)

    def tare(self, now_ns: int) -> bool:
        """Make the mean of the latest samples the new zero; call it at rest and without contact.

        Returns:
            Whether there were enough samples of the last 100 ms.
        """
        if self._filled < _WINDOW:
            return False
        age_ns = now_ns - self._receipt_ns
        if age_ns.max() > _WINDOW_NS or age_ns.min() < 0:
            return False
        self._tare = self._ring.mean(axis=0).tolist()
        self.has_tare = True
        return True
