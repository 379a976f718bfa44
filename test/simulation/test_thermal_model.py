"""Warming of the windings: monotone, bounded, independent of the step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.errors import ConfigError
from kv_action_router.simulation.thermal import ThermalModel


def make_model(initial: float = 25.0) -> ThermalModel:
    return ThermalModel(
        np.array([10.0]),
        np.array([initial]),
        ambient=25.0,
        rated_rise=80.0,
        time_constant=600.0,
        temperature_coefficient=0.0039,
    )


@given(st.floats(0.0, 10.0), st.floats(0.0, 10.0), st.floats(0.01, 1e5))
def test_more_current_is_never_cooler(first: float, second: float, duration: float) -> None:
    low, high = sorted((first, second))
    cool, warm = make_model(), make_model()
    cool.step(np.array([low**2]), duration)
    warm.step(np.array([high**2]), duration)
    assert cool.temperature[0] <= warm.temperature[0] + 1e-9


@given(st.lists(st.floats(0.0, 10.0), min_size=1, max_size=20), st.floats(0.01, 1e6))
def test_bounded_by_the_final_temperature_of_rated_current(
    currents: list[float], duration: float
) -> None:
    model = make_model()
    bound = model.final_temperature(np.array([10.0]))[0]
    for current in currents:
        model.step(np.array([current**2]), duration)
        assert 25.0 - 1e-9 <= model.temperature[0] <= bound + 1e-9


def test_monotone_to_the_final_temperature() -> None:
    model = make_model()
    trace = []
    for _ in range(200):
        model.step(np.array([36.0]), 60.0)
        trace.append(model.temperature[0])
    assert (np.diff(trace) >= 0.0).all()
    assert trace[-1] == pytest.approx(model.final_temperature(np.array([6.0]))[0], abs=1e-3)


def test_step_size_does_not_matter() -> None:
    coarse, fine = make_model(), make_model()
    coarse.step(np.array([25.0]), 100.0)
    for _ in range(1000):
        fine.step(np.array([25.0]), 0.1)
    assert coarse.temperature[0] == pytest.approx(fine.temperature[0], abs=1e-9)


def test_cools_to_ambient() -> None:
    model = make_model(90.0)
    model.step(np.zeros(1), 600.0)
    assert model.temperature[0] == pytest.approx(25.0 + 65.0 / np.e)


def test_runaway_is_refused() -> None:
    with pytest.raises(ConfigError, match="thermal runaway"):
        ThermalModel(
            np.ones(1),
            np.full(1, 25.0),
            ambient=25.0,
            rated_rise=300.0,
            time_constant=600.0,
            temperature_coefficient=0.0039,
        )
