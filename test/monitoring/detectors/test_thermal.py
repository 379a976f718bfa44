"""Temperatures are per drive; a broken sensor is no heat."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.contracts import DriveSample
from kv_action_router.monitoring.detectors.thermal import ThermalDetector
from kv_action_router.monitoring.signals import SignalTable


def drives(
    temperature: list[float], current: list[float] | None = None, rated: list[float] | None = None
) -> DriveSample:
    return DriveSample(
        names=("elbow", "wrist"),
        temperature=np.array(temperature),
        current=np.array(current or []),
        rated_current=np.array(rated or []),
        duty=np.array([]),
        wheel_speed=np.array([]),
        braked=np.array([], dtype=np.bool_),
        receipt_ns=1,
    )


def test_values_of_each_drive() -> None:
    table = SignalTable()
    ThermalDetector().on_drives(drives([40.0, 71.0], [-2.0, 1.0], [4.0, 0.0]), table)
    assert table.value("drive_temperature", 1, source="wrist") == 71.0
    assert table.value("drive_temperature", 1) == 71.0
    assert table.value("drive_current", 1, source="elbow") == 2.0
    assert table.value("drive_load", 1, source="elbow") == 0.5
    assert math.isnan(table.value("drive_load", 1, source="wrist"))


@pytest.mark.parametrize("bad", [math.nan, math.inf, 655.35, -273.15])
def test_an_impossible_temperature_is_not_measured(bad: float) -> None:
    table = SignalTable()
    detector = ThermalDetector()
    detector.on_drives(drives([50.0, 50.0]), table)
    detector.on_drives(drives([bad, 60.0]), table)
    assert math.isnan(table.value("drive_temperature", 1, source="elbow"))
    assert table.value("drive_temperature", 1) == 60.0


def test_what_is_not_measured_is_not_there() -> None:
    table = SignalTable()
    ThermalDetector().on_drives(drives([]), table)
    for name in ("drive_temperature", "drive_current", "drive_load"):
        assert math.isnan(table.value(name, 1))


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=2, max_size=2))
def test_only_plausible_temperatures_come_through(values: list[float]) -> None:
    table = SignalTable()
    ThermalDetector().on_drives(drives(values), table)
    for drive, value in zip(("elbow", "wrist"), values, strict=True):
        read = table.value("drive_temperature", 1, source=drive)
        if -40.0 <= value <= 200.0:
            assert read == value
        else:
            assert math.isnan(read)
