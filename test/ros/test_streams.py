"""Receipt of a polled sample on the steady clock, whatever the system's clock does meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here")

from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.ros import streams
from kv_action_router.ros.streams import LatestReader

SECOND = 1_000_000_000
WALL = 1_700_000_000 * SECOND
YEAR = 365 * 24 * 3600 * SECOND


class Clocks:
    """The system's clock, which somebody sets, beside the steady one."""

    def __init__(self) -> None:
        self.steady = 100 * SECOND
        self.set_by = 0

    def monotonic_ns(self) -> int:
        return self.steady

    def time_ns(self) -> int:
        return WALL + self.steady + self.set_by


class Subscription:
    """Hands out what was put into it, as DDS does: with both of its own times."""

    def __init__(self, clocks: Clocks, depth: int = 1) -> None:
        self.msg_type, self.raw = object, False
        self.qos_profile = SimpleNamespace(depth=depth)
        self.handle = self
        self._clocks = clocks
        self._waiting: list[tuple[object, dict[str, int]]] = []

    def __enter__(self) -> Subscription:
        return self

    def send(self, transport: int = 100_000) -> None:
        now = self._clocks.time_ns()
        times = {"source_timestamp": now - transport, "received_timestamp": now}
        self._waiting.append((object(), {**times, "publication_sequence_number": 1}))

    def take_message(self, kind: type, raw: bool) -> Any:
        return self._waiting.pop(0) if self._waiting else None


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(streams, "time", clocks)
    return clocks


def test_a_sample_is_as_old_as_it_lay(clocks: Clocks) -> None:
    source = Subscription(clocks)
    reader: LatestReader[Any] = LatestReader(source)
    reader.take()
    clocks.steady += 3_000_000
    source.send()
    sent = clocks.steady
    clocks.steady += 2_000_000
    sample = reader.take()
    assert sample is not None
    assert sample.receipt_ns == sent
    assert sample.origin_ns == sent - 100_000


@pytest.mark.parametrize("set_by", [-5 * SECOND, 5 * SECOND, -YEAR, 6 * YEAR, -1_000_000])
@pytest.mark.parametrize("depth", [1, 10])
def test_a_system_clock_that_is_set_makes_no_sample_old_or_of_the_future(
    clocks: Clocks, set_by: int, depth: int
) -> None:
    """K11: between its receipt and its taking, and in all samples after it."""
    source = Subscription(clocks, depth)
    reader: LatestReader[Any] = LatestReader(source)
    reader.take()
    looked = clocks.steady
    clocks.steady += 2_000_000
    source.send()
    clocks.set_by = set_by
    clocks.steady += 1_000_000
    sample = reader.take()
    assert sample is not None
    assert looked <= sample.receipt_ns <= clocks.steady
    assert sample.receipt_ns - SECOND <= sample.origin_ns <= sample.receipt_ns
    for _ in range(3):
        reader.take()
        clocks.steady += 2_000_000
        source.send()
        sent = clocks.steady
        clocks.steady += 500_000
        sample = reader.take()
        assert sample is not None
        assert sample.receipt_ns == sent


@given(
    st.lists(
        st.tuples(st.integers(1, 50_000_000), st.integers(-YEAR, YEAR), st.booleans()),
        min_size=1,
        max_size=30,
    )
)
def test_receipts_never_leave_the_time_since_the_last_look(steps: Any) -> None:
    clocks = Clocks()
    true_clock, streams.time = streams.time, clocks  # type: ignore[attr-defined]
    try:
        source = Subscription(clocks)
        reader: LatestReader[Any] = LatestReader(source)
        looked = clocks.steady
        for passed, set_by, sends in steps:
            clocks.steady += passed
            if sends:
                source.send()
            clocks.set_by += set_by
            sample = reader.take()
            if sample is not None:
                assert looked <= sample.receipt_ns <= clocks.steady
            looked = clocks.steady
    finally:
        streams.time = true_clock  # type: ignore[attr-defined]
