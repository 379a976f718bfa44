"""The guards: each refuses its own kind of motion, with value and limit."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import BSpline

from kv_action_router.caching.guards import (
    Candidate,
    EmptyGuard,
    FiniteGuard,
    JointLimitGuard,
    ReaderTrustGuard,
    StartStateGuard,
)
from kv_action_router.contracts import MissReason

CANDIDATE = Candidate("r1", 1, 1, "r1", "touch_approach_v1", 0.9, 0.9)


def test_empty(build) -> None:
    guard = EmptyGuard()
    assert guard.check(CANDIDATE, None, build.behavior()) is None
    empty = dataclasses.replace(build.behavior(), coefficients=np.zeros((0, 3)))
    assert guard.check(CANDIDATE, None, empty) == "behavior has 0 points, at least 6 are needed"


@pytest.mark.parametrize("field", ["coefficients", "knots"])
def test_finite(build, field: str) -> None:
    value = build.behavior()
    assert FiniteGuard().check(CANDIDATE, None, value) is None
    bad = getattr(value, field).copy()
    bad.flat[-1] = np.nan
    reason = FiniteGuard().check(CANDIDATE, None, dataclasses.replace(value, **{field: bad}))
    assert reason is not None
    assert field in reason


class TestJointLimits:
    def test_names_joint_value_and_limit(self, build) -> None:
        guard = JointLimitGuard(build.arm)
        assert guard.check(CANDIDATE, None, build.behavior(mark=1.9)) is None
        assert guard.check(CANDIDATE, None, build.behavior(mark=2.5)) == (
            "elbow would reach 2.500 rad, limit 2.000 rad"
        )
        assert guard.check(CANDIDATE, None, build.behavior(mark=-2.5)) == (
            "elbow would reach -2.500 rad, limit -2.000 rad"
        )

    def test_a_continuous_joint_has_none(self, build) -> None:
        value = build.behavior((0.0, 0.0, 50.0))
        assert JointLimitGuard(build.arm).check(CANDIDATE, None, value) is None

    def test_unknown_joint(self, build) -> None:
        value = dataclasses.replace(
            build.behavior(), dimensions=("a/position", "elbow/position", "wrist/position")
        )
        assert "a is no joint" in (JointLimitGuard(build.arm).check(CANDIDATE, None, value) or "")

    @given(st.integers(0, 2**32 - 1))
    def test_what_it_lets_pass_stays_inside(self, build, seed: int) -> None:
        value = build.behavior()
        coefficients = np.random.default_rng(seed).uniform(-2.3, 2.3, (12, 3))
        value = dataclasses.replace(value, coefficients=coefficients)
        if JointLimitGuard(build.arm).check(CANDIDATE, None, value) is None:
            samples = BSpline(value.knots, coefficients, 5)(np.linspace(0.0, 2.0, 50))
            assert (samples <= build.arm.upper + 1e-12).all()
            assert (samples >= build.arm.lower - 1e-12).all()


class TestStartState:
    def test_names_joint_distance_and_limit(self, build) -> None:
        guard = StartStateGuard(build.arm, 0.6)
        value = build.behavior((0.0, 1.0, 0.0))
        assert guard.check(CANDIDATE, build.sample((0.5, 1.5, 0.5)), value) is None
        assert guard.check(CANDIDATE, build.sample((0.0, 0.3, 0.0)), value) == (
            "elbow is 0.700 rad from the start of the motion, limit 0.600 rad"
        )

    def test_whole_turns_count_for_bounded_joints_only(self, build) -> None:
        guard = StartStateGuard(build.arm, 0.6)
        wrist = build.sample((0.0, 0.0, 3.5 * math.pi))
        assert guard.check(CANDIDATE, wrist, build.behavior((0.0, 0.0, -0.5 * math.pi))) is None
        shoulder = build.sample((-3.0, 0.0, 0.0))
        reason = guard.check(CANDIDATE, shoulder, build.behavior((2 * math.pi - 3.0, 0.0, 0.0)))
        assert "shoulder" in (reason or "")

    def test_no_question_without_joints(self, build) -> None:
        value = build.behavior((3.0, 0.0, 0.0))
        assert StartStateGuard(build.arm, 0.1).check(CANDIDATE, None, value) is None

    def test_a_joint_that_is_not_measured(self, build) -> None:
        guard = StartStateGuard(build.arm, 0.6)
        nan = build.sample((0.0, math.nan, 0.0))
        assert "elbow is not measured" in (guard.check(CANDIDATE, nan, build.behavior()) or "")
        part = dataclasses.replace(nan, names=("shoulder",), position=np.zeros(1))
        reason = guard.check(CANDIDATE, part, build.behavior()) or ""
        assert "elbow, wrist not measured" in reason

    def test_a_motion_that_has_begun_starts_at_its_phase(self, build) -> None:
        value = dataclasses.replace(build.behavior(mark=1.0), phase=1.0)
        guard = StartStateGuard(build.arm, 0.6)
        assert guard.check(CANDIDATE, build.sample((1.0, 1.0, 1.0)), value) is None
        assert guard.check(CANDIDATE, build.sample(), value) is not None


def test_trust_of_a_reader_is_its_own() -> None:
    guard = ReaderTrustGuard(2)
    shared = dataclasses.replace(CANDIDATE, domain="r2")
    for _ in range(2):
        guard.count("r2", 1, 1, success=False)
    assert "failed 2 times in a row for 'r2', limit 2" in (guard.check(shared, None, None) or "")
    assert guard.check(CANDIDATE, None, None) is None
    assert guard.check(dataclasses.replace(shared, version=2), None, None) is None
    guard.count("r2", 1, 1, success=True)
    assert guard.check(shared, None, None) is None


def test_trust_forgets_the_oldest_and_stays_bounded() -> None:
    guard = ReaderTrustGuard(1)
    for entry in range(guard.ROOM + 10):
        guard.count("r2", entry, 1, success=False)
    assert len(guard._failures) == guard.ROOM


def test_a_decision_names_the_guard_that_refused(build) -> None:
    manager = build.manager()
    manager.apply(build.update())
    match = build.decide(manager, key=build.key(position=(0.7, 0.0, 0.0)))
    assert not match.hit
    assert match.behavior is None
    assert match.miss_reason == MissReason.GUARD
    assert match.guard == "start_state"
    assert "0.700 rad" in match.reason
    assert "0.600 rad" in match.reason
    assert manager.counted.of_task("r1").misses_guard == 1


def test_more_guards_take_their_place_in_the_list(build) -> None:
    class Box:
        name = "collision"

        def check(self, candidate, joints, behavior) -> str:
            return f"link forearm 3 mm inside sphere 7 ({candidate.subtask})"

    manager = build.manager(guards=(Box(),))
    manager.apply(build.update())
    match = build.decide(manager)
    assert (match.guard, match.miss_reason) == ("collision", MissReason.GUARD)
    assert "sphere 7 (touch_approach_v1)" in match.reason
