"""Stamps: header stamps that order nothing.

Nothing is controlled by a header stamp. A stream whose stamps are wrong can't be correlated with
others, so it is told; its samples count by their receipt all the same.
"""

from __future__ import annotations

from collections import deque
from enum import Enum

from kv_action_router.monitoring.samples import StampSample
from kv_action_router.monitoring.signals import SignalTable

_WINDOW_NS = 1_000_000_000
_LEAP_NS = 1_000_000_000  # stamps and receipts that went on that differently are of two clocks
_COUNTED = 64  # faults a topic; more within a second say nothing more


class StampFault(Enum):
    """What is wrong with a stamp."""

    ZERO = "zero"
    REPEATED = "the same as before"
    BACKWARD = "earlier than before"
    LEAP = "far from the clock before"


class StampDetector:
    """Writes ``stamp_faults`` of each topic: wrong stamps of the last second.

    Each stamp is compared with the one before, so that a clock that was set once is one fault, and
    counting goes on from there.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, int]] = {}  # topic -> stamp, receipt [ns]
        self._faults: dict[str, deque[int]] = {}  # topic -> receipts [ns]
        self.detail: dict[str, str] = {}  # topic -> what was wrong last, for people

    def reset(self) -> None:
        """Forget all topics."""
        self._last.clear()
        self._faults.clear()
        self.detail.clear()

    def on_stamp(self, sample: StampSample) -> None:
        """Take a stamp of a topic."""
        topic, stamp_ns, receipt_ns = sample.topic, sample.stamp_ns, sample.receipt_ns
        last = self._last.get(topic)
        self._last[topic] = stamp_ns, receipt_ns
        faults = self._faults.get(topic)
        if faults is None:
            faults = self._faults[topic] = deque(maxlen=_COUNTED)
        if stamp_ns == 0:
            fault = StampFault.ZERO
        elif last is None or last[0] == 0:
            return
        elif stamp_ns == last[0]:
            fault = StampFault.REPEATED
        elif stamp_ns < last[0]:
            fault = StampFault.BACKWARD
        elif abs((stamp_ns - last[0]) - (receipt_ns - last[1])) > _LEAP_NS:
            fault = StampFault.LEAP
        else:
            return
        faults.append(receipt_ns)
        self.detail[topic] = f"stamp {stamp_ns * 1e-9:.3f} s is {fault.value}"

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Write the counts as they are now."""
        for topic, faults in self._faults.items():
            while faults and not 0 <= now_ns - faults[0] <= _WINDOW_NS:
                faults.popleft()
            table.put("stamp_faults", float(len(faults)), now_ns, topic)
