"""The stop is latched: anybody engages it, nothing that comes by the topic clears it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.injection.stop_latch import StopLatch, StopRequest

requests = st.builds(
    StopRequest,
    engaged=st.booleans(),
    source=st.sampled_from(["monitor", "operator", ""]),
    reason=st.sampled_from(["", "hand near the tool"]),
    monotonic_ns=st.integers(0, 5),
)


@given(st.lists(requests, max_size=20))
def test_engaged_as_soon_as_anybody_says_so_and_never_cleared_by_the_topic(
    messages: list[StopRequest],
) -> None:
    latch = StopLatch()
    said = False
    for message in messages:
        latch.receive(message)
        said = said or message.engaged
        assert latch.engaged == said


def test_only_the_first_message_engages() -> None:
    latch = StopLatch()
    assert latch.receive(StopRequest(True, "monitor", "overheated", 7))
    assert not latch.receive(StopRequest(True, "operator", "button", 9))
    assert (latch.source, latch.reason) == ("monitor", "overheated")


def test_redelivery_of_a_released_stop_does_not_engage_again() -> None:
    latch = StopLatch()
    stop = StopRequest(True, "monitor", "overheated", 7)
    latch.receive(stop)
    latch.release()
    assert not latch.engaged
    assert not latch.receive(stop)
    assert latch.receive(StopRequest(True, "monitor", "overheated", 8))


def test_a_stop_without_a_time_always_engages() -> None:
    latch = StopLatch()
    stop = StopRequest(True, "terminal", "", 0)
    latch.receive(stop)
    latch.release()
    assert latch.receive(stop)


def test_all_that_was_engaged_is_released_together() -> None:
    latch = StopLatch()
    latch.receive(StopRequest(True, "a", "", 1))
    latch.receive(StopRequest(True, "b", "", 2))
    latch.release()
    assert not latch.receive(StopRequest(True, "b", "", 2))
    assert not latch.engaged
