"""Contact: force and torque at the tool, free of the sensor's bias and the tool's weight."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from kv_action_router.monitoring.samples import WrenchSample
from kv_action_router.monitoring.signals import SignalTable

WRENCH_SIGNALS = ("wrench_force", "wrench_torque")
_WINDOW = 16  # samples that a tare is the mean of: 32 to 64 ms of a 500 Hz stream
_WINDOW_NS = 100_000_000  # older samples are of another situation


class ContactDetector:
    """Writes ``wrench_force`` [N] and ``wrench_torque`` [N m].

    Both are the norm of the measured vector minus the tare's, so that a bias or the tool's weight
    in one direction hides no contact in another. Before the first tare nothing is measured (NaN).
    """

    def __init__(self) -> None:
        self._latest: deque[WrenchSample] = deque(maxlen=_WINDOW)
        self._no_force = self._no_torque = (0.0, 0.0, 0.0)  # the tare's
        self.has_tare = False

    def reset(self) -> None:
        """Forget samples and tare."""
        self._latest.clear()
        self.has_tare = False

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_wrench(self, sample: WrenchSample, table: SignalTable) -> float:
        """Take a sample; one that is not finite is written as not measured.

        Returns:
            The force [N]; NaN = not measured.
        """
        values, receipt_ns = sample.values, sample.receipt_ns
        force = torque = math.nan
        # The sum of finite numbers is finite, or they are enormous.
        if -math.inf < sum(values) < math.inf or all(map(math.isfinite, values)):
            self._latest.append(sample)
            if self.has_tare:
                # Plain floats: six of them are faster than an array of six.
                force = math.dist(values[:3], self._no_force)
                torque = math.dist(values[3:], self._no_torque)
        table.put("wrench_force", force, receipt_ns)
        table.put("wrench_torque", torque, receipt_ns)
        return force

    def tare(self, now_ns: int) -> bool:
        """Make the mean of the latest samples the new zero; call it at rest and without contact.

        Returns:
            Whether there were enough samples of the last 100 ms.
        """
        if len(self._latest) < _WINDOW:
            return False
        ages_ns = [now_ns - sample.receipt_ns for sample in self._latest]
        if max(ages_ns) > _WINDOW_NS or min(ages_ns) < 0:
            return False
        mean = np.mean([sample.values for sample in self._latest], axis=0).tolist()
        self._no_force, self._no_torque = tuple(mean[:3]), tuple(mean[3:])
        self.has_tare = True
        return True
