"""PID: classes K18 and K19."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.injection.pid import PidBank

finite = st.floats(-1e3, 1e3)
anything = st.floats(allow_nan=True, allow_infinity=True)


def update(
    bank: PidBank,
    output: list[float],
    *,
    dt: float = 0.002,
    error: float = 0.0,
    speed: float = 0.0,
    set_speed: float = 0.0,
    ki: float = 100.0,
    limit: float = 10.0,
    stiffness: float = 1.0,
) -> float:
    bank.update(
        dt,
        [error],
        [set_speed],
        [0.0],
        [speed],
        [0.0],
        [50.0],
        [ki],
        [5.0],
        [4.0],
        [limit],
        stiffness,
        output,
    )
    return output[0]


@pytest.mark.parametrize("dt", [0.0, -0.002, math.nan, math.inf, -math.inf])
def test_dt_that_is_no_time_changes_nothing_and_is_counted(dt: float) -> None:
    bank, output = PidBank(1), [0.0]
    update(bank, output, error=0.1)
    before = (bank.integral[0], output[0])
    assert update(bank, output, dt=dt, error=0.3) == before[1]
    assert bank.integral[0] == before[0]
    assert bank.refused == 1


def test_set_point_step_gives_no_derivative_kick() -> None:
    bank, output = PidBank(1), [0.0]
    assert update(bank, output, error=0.0) == 0.0
    # 0.5 rad times 50 N m/rad, but for the limit; nothing of it comes from the derivative
    assert update(bank, output, error=0.15, ki=0.0) == pytest.approx(7.5)
    assert update(bank, output, error=0.5) == 10.0


def test_first_update_after_reset_has_no_memory() -> None:
    used, fresh = PidBank(1), PidBank(1)
    output = [0.0]
    for _ in range(100):
        update(used, output, error=0.1, speed=0.3)
    used.reset()
    assert update(used, [0.0], error=0.02) == update(fresh, [0.0], error=0.02)


def test_velocity_of_the_path_is_not_braked() -> None:
    assert update(PidBank(1), [0.0], speed=1.0, set_speed=1.0) == 0.0
    assert update(PidBank(1), [0.0], speed=1.0) == pytest.approx(-5.0)


def test_saturated_error_does_not_wind_up_and_recovers_at_once() -> None:
    bank, output = PidBank(1), [0.0]
    for _ in range(10_000):
        assert update(bank, output, error=5.0) == 10.0
    assert bank.integral[0] == 0.0  # clamped from the first tick on
    assert update(bank, output, error=-0.01) == pytest.approx(-0.5)


def test_integral_is_bounded_without_saturation() -> None:
    bank, output = PidBank(1), [0.0]
    for _ in range(10_000):
        update(bank, output, error=0.05)
    assert bank.integral[0] == 4.0


def test_integral_is_frozen_without_stiffness() -> None:
    bank, output = PidBank(1), [0.0]
    update(bank, output, error=0.05)
    kept = bank.integral[0]
    assert kept > 0.0
    assert update(bank, output, error=0.05, stiffness=0.0) == pytest.approx(kept)
    assert bank.integral[0] == kept


def test_one_nan_keeps_the_last_output_and_the_next_sample_recovers() -> None:
    bank, output = PidBank(1), [0.0]
    good = update(bank, output, error=0.1)
    assert update(bank, output, error=math.nan) == good
    assert bank.refused == 1
    assert math.isfinite(update(bank, output, error=0.1))
    assert math.isfinite(bank.integral[0])


@given(st.lists(st.tuples(anything, anything, anything, anything), max_size=30))
def test_output_is_finite_and_inside_limits_whatever_comes(
    samples: list[tuple[float, float, float, float]],
) -> None:
    bank, output = PidBank(1), [0.0]
    for dt, error, speed, set_speed in samples:
        update(bank, output, dt=dt, error=error, speed=speed, set_speed=set_speed)
        assert -10.0 <= output[0] <= 10.0
        assert -4.0 <= bank.integral[0] <= 4.0
