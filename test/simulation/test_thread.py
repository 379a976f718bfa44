"""A screw in its thread: advance and turn are one, seating brings force and friction."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.errors import ConfigError
from kv_action_router.simulation.thread import Thread, ThreadConfig

CONFIG = ThreadConfig()


@given(st.lists(st.floats(-20.0, 40.0), max_size=20))
def test_advance_is_pitch_times_turns(angles: list[float]) -> None:
    thread = Thread(CONFIG)
    for angle in angles:
        thread.turn(angle)
        assert thread.advance == pytest.approx(CONFIG.pitch * thread.angle / math.tau)
        assert thread.angle >= 0.0


def test_ten_turns_of_an_m3_are_five_millimeters() -> None:
    thread = Thread(ThreadConfig(travel=0.01))
    thread.turn(10.0 * math.tau)
    assert thread.advance == pytest.approx(5.0e-3)
    assert thread.seating_force == 0.0


def test_only_running_torque_before_the_seat() -> None:
    thread = Thread(CONFIG)
    thread.turn(math.tau * CONFIG.travel / CONFIG.pitch)
    assert thread.friction_torque == pytest.approx(CONFIG.running_torque, abs=1e-6)


@given(st.floats(0.0, 1.5), st.floats(0.001, 0.5))
def test_friction_rises_with_the_seating_force(past: float, more: float) -> None:
    thread = Thread(CONFIG)
    thread.turn(math.tau * CONFIG.travel / CONFIG.pitch + past)
    force, torque = thread.seating_force, thread.friction_torque
    assert torque == pytest.approx(
        CONFIG.running_torque + CONFIG.nut_factor * CONFIG.diameter * force
    )
    thread.turn(more)
    assert thread.seating_force > force
    assert thread.friction_torque > torque


def test_nothing_is_turned_out_of_its_hole_and_no_nan_gets_in() -> None:
    thread = Thread(CONFIG)
    thread.turn(-1.0)
    thread.turn(math.nan)
    thread.turn(math.inf)
    assert thread.angle == 0.0


@pytest.mark.parametrize("field", ["pitch", "diameter", "stiffness"])
def test_bad_values_are_named(field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        ThreadConfig(**{field: 0.0})
