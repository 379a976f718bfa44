"""Deadline: what DDS says about writers that should be at work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from kv_action_router.monitoring.samples import TransportFault, TransportSample
from kv_action_router.monitoring.signals import SignalTable

_WINDOW_NS = 1_000_000_000
_SETTLE_NS = 200_000_000  # events of the time before the writer began are still on their way
_COUNTED = (TransportFault.DEADLINE, TransportFault.LEASE)


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
        self._recent: dict[tuple[TransportFault, str], deque[tuple[int, int]]] = {}
        self._incompatible: dict[str, int] = {}
        self.detail: dict[str, str] = {}

    def reset(self) -> None:
        """Forget all counts."""
        self._at_work_since.clear()
        self._recent.clear()
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
            key = (sample.fault, sample.topic)
            self._recent.setdefault(key, deque()).append((sample.receipt_ns, sample.count))

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Write the counts as they are now."""
        for topic in self.topics:
            if not self._expected(topic):
                self._at_work_since.pop(topic, None)
                for fault in _COUNTED:
                    self._recent.pop((fault, topic), None)
            else:
                self._at_work_since.setdefault(topic, now_ns)
            for fault in _COUNTED:
                count = self._count((fault, topic), now_ns)
                table.put(fault.value, float(count), now_ns, topic)
            table.put(
                TransportFault.INCOMPATIBLE.value,
                float(self._incompatible.get(topic, 0)),
                now_ns,
                topic,
            )

    def _count(self, key: tuple[TransportFault, str], now_ns: int) -> int:
        recent = self._recent.get(key)
        if not recent:
            return 0
        while recent and not 0 <= now_ns - recent[0][0] <= _WINDOW_NS:
            recent.popleft()
        return sum(count for _, count in recent)
