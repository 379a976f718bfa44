"""Motion that is commanded and does not happen."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from monitoring_builders import MS, feedback

from kv_action_router.contracts import InjectorState
from kv_action_router.monitoring.detectors.motion import Motion
from kv_action_router.monitoring.detectors.stuck import MOVED, StuckDetector
from kv_action_router.monitoring.signals import SignalTable


class Stuck:
    def __init__(self) -> None:
        self.table, self.detector, self.ms = SignalTable(), StuckDetector(), 0.0

    def way(self, here: float, there: float, state: InjectorState = InjectorState.FOLLOW) -> float:
        """Return the wrist's stuck distance after a feedback 10 ms later."""
        self.ms += 10
        one = feedback(self.ms, position=(0.0, here), setpoint=(0.0, there), state=state)
        self.detector.on_feedback(Motion.of(one), one.monotonic_ns, self.table)
        return self.table.value("stuck_distance", int(self.ms * MS), source="wrist")

    def jam(self, here: float, there: float) -> float:
        """Return the wrist's jam distance after a feedback 10 ms later."""
        self.way(here, there)
        return self.table.value("jam_distance", int(self.ms * MS), source="wrist")


def test_the_way_of_the_set_point_counts_while_the_joint_stands() -> None:
    stuck = Stuck()
    assert stuck.way(0.0, 0.0) == 0.0
    assert stuck.way(0.0, 0.02) == pytest.approx(0.02)
    assert stuck.way(0.001, -0.05) == pytest.approx(0.05)
    assert stuck.way(0.01, -0.06) == 0.0  # it has moved
    assert stuck.way(0.01, -0.07) == pytest.approx(0.01)


def test_a_joint_jams_by_what_its_set_point_goes_away() -> None:
    stuck = Stuck()
    assert stuck.jam(0.1, 0.104) == 0.0  # it was behind when it stopped
    assert stuck.jam(0.1, 0.12) == pytest.approx(0.016)
    assert stuck.jam(0.101, 0.13) == pytest.approx(0.025)
    assert stuck.jam(0.104, 0.13) == 0.0  # it has moved


def test_a_press_that_is_let_go_of_is_no_jam() -> None:
    """The set-point goes back through 40 mrad while the joint stands."""
    stuck = Stuck()
    stuck.detector.on_task(stuck.table, contact=True)
    assert math.isnan(stuck.jam(0.1, 0.1))
    assert math.isnan(stuck.jam(0.1, 0.14))
    stuck.detector.on_task(stuck.table, contact=False)
    ways = [stuck.jam(0.1, 0.14 - 0.004 * step) for step in range(11)]
    assert max(ways) == pytest.approx(0.0)
    assert stuck.way(0.1, 0.1) == pytest.approx(0.0, abs=1e-12)
    assert stuck.jam(0.1, 0.08) == pytest.approx(0.02)  # and now it pulls on what holds it


def test_an_injector_that_controls_nothing_begins_anew() -> None:
    stuck = Stuck()
    stuck.way(0.0, 0.0)
    assert stuck.way(0.0, 0.1) == pytest.approx(0.1)
    assert math.isnan(stuck.way(0.0, 0.1, InjectorState.STOPPED))
    assert math.isnan(stuck.table.value("jam_distance", int(stuck.ms * MS), source="wrist"))
    assert stuck.way(0.0, 0.2) == 0.0


def test_a_position_that_is_not_measured_counts_nothing() -> None:
    stuck = Stuck()
    stuck.way(0.0, 0.0)
    stuck.way(math.nan, 0.3)
    assert stuck.way(0.0, 0.3) == 0.0


@settings(max_examples=40)
@given(
    st.lists(st.floats(-0.02, 0.02), min_size=1, max_size=40),
    st.floats(-0.008, 0.008),
)
def test_a_joint_that_follows_is_stuck_by_little(steps: list[float], lag: float) -> None:
    """With any lag that it keeps, the way while it stands is at most the joint's own and a step."""
    stuck = Stuck()
    setpoint = 0.0
    for step in steps:
        setpoint += step
        assert stuck.way(setpoint - lag, setpoint) <= MOVED + 1e-12
