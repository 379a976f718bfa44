"""A step of the force: the largest fall since the motion began, and only while it is asked for."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.monitoring.detectors.force_step import FORCE_DROP, ForceStepDetector
from kv_action_router.monitoring.signals import SignalTable

MS = 1_000_000


def drop(detector: ForceStepDetector, forces: list[float]) -> float:
    table = SignalTable()
    for index, force in enumerate(forces):
        detector.on_force(force, (index + 1) * MS, table)
    return table.value(FORCE_DROP, (len(forces) + 1) * MS)


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=30))
def test_it_is_the_largest_fall_of_any_two_in_order(forces: list[float]) -> None:
    falls = [max(forces[: index + 1]) - force for index, force in enumerate(forces)]
    assert drop(ForceStepDetector(), forces) == max(falls)


def test_a_step_is_remembered_when_the_force_has_come_back() -> None:
    detector = ForceStepDetector()
    assert drop(detector, [2.0, 9.0, 14.0, 4.0, 12.0, 16.0]) == 10.0
    detector.begin()
    assert drop(detector, [5.0, 4.5]) == 0.5


def test_what_is_not_measured_is_no_fall() -> None:
    assert math.isnan(drop(ForceStepDetector(), [math.nan]))
    assert drop(ForceStepDetector(), [8.0, math.nan, 7.0]) == 1.0
