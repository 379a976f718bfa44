"""Deadline: what DDS says about writers that should be at work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from kv_action_router.monitoring.samples import TransportFault, TransportSample
from kv_action_router.monitoring.signals import SignalTable

_WINDOW_NS = 1_000_000_000
_SETTLE_NS = 200_000_000  # events of the time before the writer began are still on their way
_COUNTED = (TransportFault.DEADLINE.value, TransportFault.LEASE.value)
_INCOMPATIBLE = TransportFault.INCOMPATIBLE.value


class DeadlineDetector:
    """Writes ``deadline_misses``, ``lease_losses`` and ``incompatible_qos`` of each topic.

    A missed deadline or a lost lease counts for a second, and only while the topic's writer should
    be at work, not right after it began. Profiles that don't match are counted for good: such a
    pair of writer and reader never heals.

    DDS says nothing about a writer that never wrote; that is the heartbeat's to tell.
    """

    def __init__(self, topics: Sequence[str], expected: Callable[[str], bool]) -> None:
        """Watch topics.

        Args:
            topics: to watch.
            expected: whether a topic's writer should be at work now.
        """
        self.topics = tuple(topics)
        self._expected = expected
        self._at_work_since: dict[str, int] = {}
        # signal -> topic -> (receipt [ns], count) of each event
        self._recent: dict[str, dict[str, deque[tuple[int, int]]]] = {
            signal: {} for signal in _COUNTED
        }
        self._incompatible: dict[str, int] = {}
        self.detail: dict[str, str] = {}

    def reset(self) -> None:
        """Forget all counts."""
        self._at_work_since.clear()
        for recent in self._recent.values():
            recent.clear()
        self._incompatible.clear()
        self.detail.clear()

    def on_event(self, sample: TransportSample) -> None:
        """Take a DDS event."""
        if sample.count <= 0:
            return
        if sample.fault is TransportFault.INCOMPATIBLE:
            self._incompatible[sample.topic] = (
                self._incompatible.get(sample.topic, 0) + sample.count
            )
            self.detail[sample.topic] = sample.detail
            return
        since = self._at_work_since.get(sample.topic)
        if since is not None and sample.receipt_ns - since >= _SETTLE_NS:
            events = self._recent[sample.fault.value].setdefault(sample.topic, deque())
            events.append((sample.receipt_ns, sample.count))

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Write the counts as they are now."""
        for topic in self.topics:
            at_work = self._expected(topic)
            if at_work:
                self._at_work_since.setdefault(topic, now_ns)
            else:
                self._at_work_since.pop(topic, None)
            for signal, recent in self._recent.items():
                if not at_work:
                    recent.pop(topic, None)
                count = _count(recent[topic], now_ns) if topic in recent else 0
                table.put(signal, float(count), now_ns, topic)
            table.put(_INCOMPATIBLE, float(self._incompatible.get(topic, 0)), now_ns, topic)


def _count(recent: deque[tuple[int, int]], now_ns: int) -> int:
    """Return how many events there were in the last second; older ones are dropped."""
    while recent and not 0 <= now_ns - recent[0][0] <= _WINDOW_NS:
        recent.popleft()
    return sum(count for _, count in recent)
