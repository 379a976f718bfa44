"""What counts as safe is told from joint states, task result and reports."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from kv_action_router.reporting.bounds import broken
from kv_action_router.reporting.faults import BOUNDS, FaultRecord, Motion, figures

GOOD = FaultRecord(
    name="joint_states silence",
    source="joint_states",
    watchdog_ms=20.0,
    speed=0.4,
    rest_ms=150.0,
    position_step=0.3,
    velocity_step=0.9,
    ended="was stopped",
    reports=("joint_states [400] not heard of",),
    named=True,
    moved_after_stop=False,
    died=(),
)


def motion(velocity: list[float], lost: int = 0) -> Motion:
    v = np.array(velocity)[:, None]
    count = len(velocity)
    number = np.arange(count, dtype=float)
    number[count // 2 :] += lost
    return Motion(np.arange(count, dtype=float) * 2e6, number, np.cumsum(v, axis=0) * 0.002, v)


def test_rest_is_a_rest_that_lasts() -> None:
    still, moving = [0.005] * 60, [0.3] * 20
    assert motion(moving + still).rest_ns() == 40_000_000
    assert motion(moving + still[:40] + moving).rest_ns() is None  # 80 ms
    assert motion(moving + still[:40] + moving + still).rest_ns() == 160_000_000
    assert motion(moving + still + moving).rest_ns() == 40_000_000  # it went on later
    assert motion(moving + still + moving).since(50_000_000).rest_ns() == 50_000_000
    assert motion(moving).rest_ns() is None
    assert motion([]).rest_ns() is None


def test_a_sample_that_was_lost_lengthens_the_step() -> None:
    velocity = [0.0, 0.0, 0.01, 0.01]
    assert motion(velocity).steps(0.002)[1] == pytest.approx(5.0)
    assert motion(velocity, lost=1).steps(0.002)[1] == pytest.approx(2.5)
    assert motion([0.1]).steps(0.002)[0] == 0.0


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"rest_ms": 221.0}, "at rest after 221 ms, limit 220 ms"),
        ({"rest_ms": None}, "the arm went on and its task was stopped"),
        ({"rest_ms": 1100.0}, "the arm went on and its task was stopped"),
        ({"rest_ms": 300.0, "ended": "succeeded"}, "at rest after 300 ms"),
        ({"velocity_step": 1.1}, "a velocity step of 1.10 times"),
        ({"position_step": 1.1}, "a position step"),
        ({"named": False}, "no report names joint_states"),
        ({"moved_after_stop": True}, "moved after the stop"),
        ({"died": ("cache_manager",)}, "cache_manager died"),
    ],
)
def test_each_thing_that_goes_wrong_is_told(change: dict[str, object], fault: str) -> None:
    record = dataclasses.replace(GOOD, **change)  # type: ignore[arg-type]
    assert GOOD.faults == ()
    assert fault in record.faults[0]
    report = figures([GOOD, record])
    assert (report["injections"], report["safe"]) == (2, 1)
    assert report["faults"] == [f"joint_states silence: {record.faults[0]}"]
    assert len(broken(report, BOUNDS, essential_only=False)) == 2


def test_a_fault_that_is_borne_needs_no_rest() -> None:
    borne = dataclasses.replace(GOOD, rest_ms=None, ended="succeeded", source="", named=False)
    assert borne.faults == ()
    assert dataclasses.replace(borne, rest_ms=2500.0).faults == ()  # at rest where the task ended
    report = figures([borne] * 60)
    assert broken(report, BOUNDS, essential_only=False) == []
    assert report["safe_lower_bound_95"] == pytest.approx(0.05 ** (1 / 60))


def test_the_end_of_a_motion_is_no_reaction_to_a_fault_that_is_borne() -> None:
    borne = dataclasses.replace(GOOD, rest_ms=800.0, ended="succeeded", source="", named=False)
    assert borne.reaction_ms is None
    assert borne.faults == ()
    stopped = dataclasses.replace(borne, ended="was stopped")
    assert stopped.faults == ("at rest after 800 ms, limit 220 ms",)
