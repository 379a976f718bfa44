"""The guard against reuse into a collision: what it refuses, when it is asked, what follows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from kv_action_router.caching.collision_guard import CollisionGuard
from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.guards import Candidate
from kv_action_router.caching.manager import CacheManager
from kv_action_router.contracts import (
    BehaviorValue,
    FloatArray,
    JointSample,
    MissReason,
    Pose,
    SeenObstacles,
    TargetEstimate,
)
from kv_action_router.errors import ConfigError
from kv_action_router.robots.model import RobotModel

threadpool_limits(1)

ROBOT = RobotModel.load()
CHECK = ROBOT.collision_model(table_height=0.0)
CONFIG = CachingConfig(robot_id="r1", capacity=16)
TARGET = np.array([0.5, 0.12, 0.01])
NOW_NS = 5_000_000_000


def behavior(target: FloatArray = TARGET, above: float = 0.06, points: int = 28) -> BehaviorValue:
    """Return a motion from home to above a target, rest to rest."""
    degree, duration = 5, 1.2
    inner = np.linspace(0.0, duration, points - degree + 1)
    knots = np.concatenate((np.zeros(degree), inner, np.full(degree, duration)))
    share = np.convolve(knots[1:-1], np.full(degree, 1.0 / degree), "valid") / duration
    share = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    end = ROBOT.solve_ik(target + np.array([0.0, 0.0, above]))
    return BehaviorValue(
        subtask="touch_approach_v1",
        dimensions=tuple(f"{name}/position" for name in ROBOT.joint_names),
        degree=degree,
        knots=knots,
        coefficients=ROBOT.home + np.outer(share, end - ROBOT.home),
        phase=0.0,
        decay=np.ones(ROBOT.n),
        target=Pose(target),
    )


def sample(position: FloatArray = ROBOT.home) -> JointSample:
    """Return a joint state at rest."""
    zero = np.zeros(ROBOT.n)
    return JointSample(ROBOT.joint_names, np.array(position), zero, zero, 1)


def candidate(target: FloatArray | None = TARGET, contact: str = "") -> Candidate:
    """Return what the match knows."""
    estimate = None if target is None else TargetEstimate(Pose(target), np.eye(6) * 1e-6)
    return Candidate("r1", 1, 1, "r1", "touch_approach_v1", 0.9, 0.9, estimate, contact)


def half_way(value: BehaviorValue, radius: float = 0.02) -> FloatArray:
    """Return an obstacle where the tip is half way (1, 4)."""
    middle = 0.5 * (value.coefficients[0] + value.coefficients[-1])
    return np.array([[*ROBOT.forward(middle)[0], radius]])


class Eyes:
    """Obstacles to look at; counts the looks."""

    def __init__(self, spheres: FloatArray | None = None, seen_ns: int = NOW_NS) -> None:
        self.new = None if spheres is None else SeenObstacles(spheres, seen_ns)
        self.looks = 0

    def __call__(self) -> SeenObstacles | None:
        self.looks += 1
        new, self.new = self.new, None
        return new

    def guard(self, config: CachingConfig = CONFIG) -> CollisionGuard:
        """Return a guard that looks here."""
        return CollisionGuard(ROBOT, config, self, lambda: NOW_NS)


def test_names_pair_time_and_padding() -> None:
    value = behavior()
    assert Eyes().guard().check(candidate(), sample(), value) is None
    far = np.array([[0.5, -0.5, 0.4, 0.05]])
    reason = Eyes(np.vstack((far, half_way(value)))).guard().check(candidate(), sample(), value)
    assert reason is not None
    assert reason.startswith("spindle - obstacle 1 at 0.")
    assert reason.endswith(" s, padding 0.02 m")


def test_obstacles_are_remembered_until_others_come() -> None:
    value = behavior()
    eyes = Eyes(half_way(value))
    guard = eyes.guard()
    assert guard.check(candidate(), sample(), value) is not None
    assert guard.check(candidate(), sample(), value) is not None
    eyes.new = SeenObstacles(np.zeros((0, 4)), NOW_NS)
    assert guard.check(candidate(), sample(), value) is None
    assert eyes.looks == 3


def test_obstacles_seen_too_long_ago_vouch_for_nothing() -> None:
    free = np.zeros((0, 4))
    fresh = Eyes(free, NOW_NS - 900_000_000).guard()
    assert fresh.check(candidate(), sample(), behavior()) is None
    stale = Eyes(free, NOW_NS - 1_300_000_000).guard()
    assert stale.check(candidate(), sample(), behavior()) == (
        "obstacles were seen 1300 ms ago, limit 1000 ms"
    )


def test_question_without_a_start_is_let_pass_and_looks_at_nothing() -> None:
    value = behavior()
    eyes = Eyes(half_way(value))
    assert eyes.guard().check(candidate(), None, value) is None
    assert eyes.looks == 0


def test_tests_the_motion_from_the_measured_start() -> None:
    value = behavior()
    start = ROBOT.home + np.array([-0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    there = np.array([[*ROBOT.forward(start)[0], 0.01]])
    assert Eyes(there).guard().check(candidate(), sample(), value) is None
    reason = Eyes(there).guard().check(candidate(), sample(start), value)
    assert reason is not None
    assert "obstacle 0 at 0.00 s" in reason


def test_tests_the_motion_to_where_the_target_is_now() -> None:
    value = behavior()
    moved = TARGET + np.array([0.02, -0.22, 0.0])
    there = np.array([[*moved + np.array([0.0, 0.0, 0.05]), 0.01]])
    assert Eyes(there).guard().check(candidate(), sample(), value) is None
    assert Eyes(there).guard().check(candidate(moved), sample(), value) is not None


def test_allows_the_contact_that_the_stage_allows() -> None:
    value = behavior(above=-0.002)
    own = np.array([[*TARGET, 0.015]])
    refused = Eyes(own).guard().check(candidate(), sample(), value)
    assert refused is not None
    assert Eyes(own).guard().check(candidate(contact="target"), sample(), value) is None
    beside = np.array([[*TARGET + np.array([0.0, -0.07, 0.05]), 0.05]])
    assert Eyes(beside).guard().check(candidate(contact="target"), sample(), value) is not None


def test_warming_up_looks_at_nothing_and_leaves_nothing() -> None:
    eyes = Eyes(half_way(behavior()))
    guard = eyes.guard()
    guard.warm_up()
    assert eyes.looks == 0
    assert guard.check(candidate(), sample(), behavior()) is not None


def test_missing_joints_are_named() -> None:
    value = behavior()
    part = dataclasses.replace(
        value, dimensions=value.dimensions[:-1], coefficients=value.coefficients[:, :-1]
    )
    reason = Eyes().guard().check(candidate(), sample(), part)
    assert reason == "behavior has no positions of wrist_3_joint"


def test_what_cannot_be_tested_does_not_pass() -> None:
    broken = Eyes(np.full((1, 4), np.nan)).guard()
    reason = broken.check(candidate(), sample(), behavior())
    assert reason is not None
    assert "spheres must be finite" in reason


def test_links_of_another_robot_are_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"contact_links must be links of the robot .*'hand'"):
        Eyes().guard(dataclasses.replace(CONFIG, contact_links=("tool", "hand")))


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_never_passes_what_a_dense_test_refuses(seed: int) -> None:
    """Half the padding is what samples may miss at most."""
    generator = np.random.default_rng(seed)
    value = behavior(TARGET + generator.uniform(-0.05, 0.05, 3) * np.array([1.0, 1.0, 0.0]))
    center = generator.uniform([0.3, -0.2, 0.05], [0.7, 0.3, 0.5], (6, 3))
    around = np.column_stack((center, np.full(6, 0.01)))
    start = ROBOT.home + generator.uniform(-0.2, 0.2, ROBOT.n)
    guard = Eyes(around).guard()
    if guard.check(candidate(), sample(start), value) is not None:
        return
    path = guard._joined(candidate(), sample(start), value)(np.linspace(0.0, 1.2, 400))
    assert np.abs(path[0] - start).max() < 1e-9
    assert np.abs(ROBOT.forward(path[-1])[0] - TARGET - np.array([0.0, 0.0, 0.06])).max() < 1e-4
    near = CHECK.first_collision(path, around, 0.5 * CONFIG.collision_padding)
    assert near is None or "obstacle" not in near[1]


# --- in the cache ---


def real(build, eyes: Eyes) -> CacheManager:
    """Return a cache of the real robot with one entry."""
    manager = CacheManager(CONFIG, ROBOT, None, [eyes.guard()])
    manager.apply(build.update(behavior=behavior()))
    return manager


def real_key(build, position: FloatArray = ROBOT.home, **decision):
    """Return a key of the real robot."""
    key = build.key(**decision)
    estimate = TargetEstimate(Pose(TARGET), np.eye(6) * 1e-6)
    return dataclasses.replace(key, joints=sample(position), target=estimate)


def test_a_hit_into_an_obstacle_is_refused_with_its_reason(build) -> None:
    manager = real(build, Eyes(half_way(behavior())))
    match = build.decide(manager, key=real_key(build))
    assert (match.hit, match.miss_reason, match.guard) == (False, MissReason.GUARD, "collision")
    assert match.behavior is None
    assert "refused by guard collision: spindle - obstacle 0 at 0." in match.reason
    assert manager.counted.of_task("r1").misses_guard == 1


def test_is_asked_by_decisions_only_and_after_the_cheap_guards(build) -> None:
    eyes = Eyes()
    manager = real(build, eyes)
    for _ in range(5):
        manager.on_key(real_key(build))  # nothing is asked for
    manager.query(build.vector(), intent_id="touch")
    assert eyes.looks == 0
    assert build.decide(manager, key=real_key(build)).hit
    for _ in range(5):
        manager.on_key(real_key(build))  # refreshes
    assert eyes.looks == 1
    too_far = ROBOT.home + np.array([0.7, 0.0, 0.0, 0.0, 0.0, 0.0])
    match = build.decide(manager, 2, key=real_key(build, too_far))
    assert (match.hit, match.guard) == (False, "start_state")
    assert "shoulder_pan_joint is 0.700 rad from the start" in match.reason
    assert eyes.looks == 1


class Refusing:
    """Refuses some entries, and notes which it was asked about."""

    name = "collision"

    def __init__(self) -> None:
        self.refused: set[int] = set()
        self.asked: list[int] = []

    def check(self, candidate: Candidate, joints: object, value: object) -> str | None:
        self.asked.append(candidate.entry_id)
        return "in the way" if candidate.entry_id in self.refused else None


@given(cosines=st.lists(st.floats(0.86, 0.99), min_size=2, max_size=4, unique=True), data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_guard_changes_what_is_taken_and_never_the_order(build, cosines, data) -> None:
    guard = Refusing()
    manager = build.manager(guards=(guard,), merge_threshold=1.0, target_minimum=0.0)
    for number, cosine in enumerate(cosines):
        manager.apply(
            build.update(
                vector=build.turned(build.vector(), "target", cosine),
                behavior=build.behavior(mark=0.01 * number),
            )
        )
    ranked = [1 + int(at) for at in np.argsort([-cosine for cosine in cosines])]
    guard.refused = set(data.draw(st.lists(st.sampled_from(ranked), unique=True)))
    match = build.decide(manager)
    left = [entry for entry in ranked if entry not in guard.refused]
    if left:
        assert (match.hit, match.entry_id) == (True, left[0])
        assert guard.asked == ranked[: ranked.index(left[0]) + 1]
    else:
        assert (match.hit, match.entry_id) == (False, ranked[0])
        assert guard.asked == ranked


class TestVariants:
    """A replan stands beside the entry that a guard refused for its decision."""

    def replan(self, build, manager: CacheManager, decision_id: int, mark: float) -> int:
        """Let a decision be refused and answer it; return the entry of the answer."""
        match = build.decide(manager, decision_id)
        assert match.guard == "collision"
        update = build.update(behavior=build.behavior(mark=mark), decision_id=decision_id)
        return manager.apply(update).entry_id

    def test_the_old_entry_hits_again_when_the_way_is_free(self, build) -> None:
        guard = Refusing()
        manager = build.manager(guards=(guard,))
        first = manager.apply(build.update()).entry_id
        guard.refused = {first}
        around = self.replan(build, manager, 1, 0.1)
        assert around != first
        assert build.decide(manager, 2).entry_id == around
        guard.refused = {around}
        assert build.decide(manager, 3).entry_id == first

    def test_they_stay_few(self, build) -> None:
        guard = Refusing()
        manager = build.manager(guards=(guard,))
        entries = {manager.apply(build.update()).entry_id}
        for decision_id in range(1, 9):
            guard.refused = set(entries)
            entries.add(self.replan(build, manager, decision_id, 0.01 * decision_id))
        assert len(entries) == 3

    def test_without_a_refusal_near_duplicates_are_merged(self, build) -> None:
        manager = build.manager()
        first = manager.apply(build.update()).entry_id
        build.decide(manager, 1)
        assert manager.apply(build.update(decision_id=1)).entry_id == first
        assert len(manager.entries) == 1


@pytest.mark.parametrize(
    ("field", "value"), [("collision_padding", -0.01), ("obstacle_age_ms", 0.0)]
)
def test_bad_parameters_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=field):
        CachingConfig(**{field: value})  # type: ignore[arg-type]


class TestVerdicts:
    """A test that was made beforehand is used again, for as good as the same motion only."""

    def guard(self, obstacles: list[SeenObstacles | None]) -> tuple[CollisionGuard, list[int]]:
        tests: list[int] = []
        guard = CollisionGuard(
            ROBOT, CONFIG, lambda: obstacles.pop(0) if obstacles else None, lambda: NOW_NS
        )
        refusal = guard._refusal

        def counted(*arguments: object) -> str | None:
            tests.append(1)
            return refusal(*arguments)  # type: ignore[arg-type]

        guard._refusal = counted  # type: ignore[method-assign]
        return guard, tests

    def test_the_same_motion_is_tested_once(self) -> None:
        guard, tests = self.guard([])
        near = sample(ROBOT.home + 1e-4)
        first = guard.check(candidate(), sample(), behavior())
        assert guard.check(candidate(), near, behavior()) == first
        assert len(tests) == 1

    @pytest.mark.parametrize(
        "change",
        [
            lambda c, s: (dataclasses.replace(c, version=2), s),
            lambda c, s: (dataclasses.replace(c, entry_id=2), s),
            lambda c, s: (dataclasses.replace(c, allowed_contact="target"), s),
            lambda c, s: (dataclasses.replace(c, target=None), s),
            lambda c, s: (c, sample(ROBOT.home + 0.01)),
            lambda c, s: (c, sample(np.full(ROBOT.n, np.nan))),
        ],
    )
    def test_another_motion_is_tested_anew(self, change) -> None:  # type: ignore[no-untyped-def]
        guard, tests = self.guard([])
        guard.check(candidate(), sample(), behavior())
        changed, joints = change(candidate(), sample())
        guard.check(changed, joints, behavior())
        assert len(tests) == 2

    def test_other_obstacles_end_it(self) -> None:
        wall = SeenObstacles(np.array([[*TARGET[:2], 0.2, 0.1]]), NOW_NS)
        guard, tests = self.guard([None, wall])
        assert guard.check(candidate(), sample(), behavior()) is None
        assert "obstacle 0" in (guard.check(candidate(), sample(), behavior()) or "")
        assert len(tests) == 2
