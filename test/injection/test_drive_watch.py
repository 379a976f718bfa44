"""Clamp and stall count only while they hold without a gap."""

from __future__ import annotations

import pytest
from injection_builders import TwoJoints, execution_value

from kv_action_router.injection.drive_watch import DriveWatch
from kv_action_router.injection.execution_layer import DriveFault
from kv_action_router.injection.execution_table import ExecutionTable

LIMITS = ExecutionTable(TwoJoints(), execution_value()).current
NOTHING = (-1, DriveFault.NONE)


def run(watch: DriveWatch, ticks: int, wanted: float, sent: float, speed: float):
    answer = NOTHING
    for _ in range(ticks):
        answer = watch.update(0.002, [0.0, wanted], [0.0, sent], [0.0, speed], LIMITS)
        if answer != NOTHING:
            break
    return answer


def test_protective_clamp_is_seen_after_its_hold() -> None:
    watch = DriveWatch(2, protective_hold=0.02)
    assert run(watch, 9, 51.0, 50.0, 1.0) == NOTHING
    assert run(watch, 1, 49.0, 49.0, 1.0) == NOTHING  # the gap
    assert run(watch, 9, 51.0, 50.0, 1.0) == NOTHING
    assert run(watch, 2, 51.0, 50.0, 1.0) == (1, DriveFault.CLAMP)


@pytest.mark.parametrize(
    ("sent", "speed", "answer"),
    [
        (46.0, 0.0, (1, DriveFault.STALL)),
        (-46.0, 0.005, (1, DriveFault.STALL)),
        (46.0, 0.02, NOTHING),  # it moves
        (44.0, 0.0, NOTHING),  # it holds a load
    ],
)
def test_stall_is_effort_without_motion(
    sent: float, speed: float, answer: tuple[int, DriveFault]
) -> None:
    assert run(DriveWatch(2, 0.02), 105, sent, sent, speed) == answer


def test_reset_forgets_what_was_counted() -> None:
    watch = DriveWatch(2, protective_hold=0.02)
    run(watch, 9, 51.0, 50.0, 1.0)
    watch.reset()
    assert run(watch, 9, 51.0, 50.0, 1.0) == NOTHING
