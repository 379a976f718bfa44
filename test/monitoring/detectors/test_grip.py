"""The gripper's force comes from its drive's current, where there is a gripper."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kv_action_router.contracts import DriveSample
from kv_action_router.monitoring.detectors.grip import GripDetector
from kv_action_router.monitoring.signals import SignalTable


def drives(names: tuple[str, ...], current: list[float]) -> DriveSample:
    empty = np.zeros(0)
    return DriveSample(
        names, empty, np.array(current), empty, empty, empty, np.zeros(0, dtype=np.bool_), 7
    )


def test_force_is_current_times_constant() -> None:
    table = SignalTable()
    GripDetector("finger", 40.0).on_drives(drives(("elbow", "finger"), [9.0, -0.5]), table)
    assert table.value("grip_force", 7) == pytest.approx(20.0)


@pytest.mark.parametrize(("drive", "names"), [("", ("finger",)), ("finger", ("elbow",))])
def test_without_a_gripper_there_is_no_force(drive: str, names: tuple[str, ...]) -> None:
    table = SignalTable()
    GripDetector(drive, 40.0).on_drives(drives(names, [1.0]), table)
    assert math.isnan(table.value("grip_force", 7))


def test_a_current_that_is_not_measured_is_no_force() -> None:
    table = SignalTable()
    GripDetector("finger", 40.0).on_drives(drives(("elbow", "finger"), []), table)
    assert math.isnan(table.value("grip_force", 7))
