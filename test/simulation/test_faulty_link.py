"""What a link does to messages: each fault is what its name says, and ends when told to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.errors import InputError
from kv_action_router.simulation.faulty_link import (
    CONTENTS,
    DELAY_NS,
    Fault,
    FaultyLink,
    fault_of,
)


def send(link: FaultyLink[int], messages: range, now_ns: int = 0) -> list[int]:
    return [out for message in messages for out in link.take(message, now_ns)]


def link(fault: Fault = Fault.NONE) -> FaultyLink[int]:
    made: FaultyLink[int] = FaultyLink(lambda fault, message: -message)
    made.fault = fault
    return made


@pytest.mark.parametrize(
    ("fault", "out"),
    [
        (Fault.NONE, [1, 2, 3, 4]),
        (Fault.SILENCE, []),
        (Fault.DUPLICATE, [1, 1, 2, 2, 3, 3, 4, 4]),
        (Fault.REORDER, [2, 1, 4, 3]),
        (Fault.FROZEN, [1, 1, 1, 1]),
        *((fault, [-1, -2, -3, -4]) for fault in CONTENTS),
        (Fault.DELAY, []),
    ],
)
def test_each_fault_does_what_its_name_says(fault: Fault, out: list[int]) -> None:
    assert send(link(fault), range(1, 5)) == out


def test_what_is_delayed_comes_at_its_time() -> None:
    made = link(Fault.DELAY)
    made.take(1, 0)
    made.take(2, 10)
    made.fault = Fault.NONE
    assert made.take(3, 20) == [3]  # newer ones overtake it
    assert made.due(DELAY_NS - 1) == []
    assert made.due(DELAY_NS) == [1]
    assert made.due(DELAY_NS + 10) == [2]
    assert made.due(2 * DELAY_NS) == []


LOSING = (Fault.SILENCE, Fault.FROZEN)


@given(st.lists(st.sampled_from([f for f in Fault if f not in LOSING]), max_size=30))
def test_nothing_is_lost_but_by_silence_and_frost(faults: list[Fault]) -> None:
    made, out = link(), []
    for message, fault in enumerate(faults, start=1):
        made.fault = fault
        out += made.take(message, 0)
    made.fault = Fault.NONE
    out += made.take(len(faults) + 1, 0) + made.due(DELAY_NS)
    assert {abs(message) for message in out} == set(range(1, len(faults) + 2))


def test_an_unknown_fault_is_named() -> None:
    with pytest.raises(InputError, match="fault must be one of none, silence, .* got 'fire'"):
        fault_of("fire")


def test_what_is_frozen_is_what_came_last() -> None:
    made = link()
    assert send(made, range(1, 4)) == [1, 2, 3]
    made.fault = Fault.FROZEN
    assert send(made, range(4, 7)) == [3, 3, 3]
    made.fault = Fault.NONE
    assert send(made, range(7, 8)) == [7]
