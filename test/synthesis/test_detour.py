"""Ways around obstacles, and corrected motions that are refused."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from synthesis_rig import NO_SPHERES, Rig, make_match, pose

from kv_action_router.contracts import FloatArray, Pose
from kv_action_router.errors import CollisionError
from kv_action_router.robots.model import RobotModel
from kv_action_router.robots.swept import Touch
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.decider import Decider
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import Motion, MotionState
from kv_action_router.tasks.stages import TaskDefinition

MS = 1_000_000
TARGET = pose(0.46, 0.14)


def wall(x: float = 0.464, y: float = 0.059, height: float = 0.18) -> FloatArray:
    """Return spheres over the faces of a plate of 80 x 30 mm that stands on the table (k, 4)."""
    across, up = np.meshgrid(np.linspace(-0.03, 0.03, 4), np.arange(0.03, height, 0.02))
    spheres = [
        np.column_stack((x + across.ravel(), np.full(across.size, y + side), up.ravel()))
        for side in (-0.01, 0.01)
    ]
    center = np.vstack(spheres)
    return np.column_stack((center, np.full(len(center), 0.015)))


def request(
    task: TaskDefinition,
    start: FloatArray,
    obstacles: FloatArray,
    *,
    stage: int = 0,
    target: Pose = TARGET,
    trigger_ns: int = 0,
) -> PlanRequest:
    """Return a request of one stage of the task."""
    match = make_match(target, trigger_ns=trigger_ns)
    return PlanRequest(task.stages[stage], MotionState.at_rest(start), target, obstacles, match)


def check_limits(motion: Motion, model: RobotModel) -> None:
    """A motion from rest to rest inside what the robot can."""
    limits = MotionLimits.of(model)
    dense = np.linspace(0.0, motion.duration, 2000)
    limits.check_positions(motion.derivative(dense, 0))
    load = limits.load(*(motion.derivative(dense, order) for order in (1, 2, 3)))
    assert max(load.velocity, load.acceleration, load.jerk) <= 1.0


class TestWayAround:
    """A plate between home and the target."""

    @pytest.mark.parametrize("x", [0.44, 0.464, 0.48])
    def test_approach_is_led_around_inside_all_limits(
        self, model: RobotModel, source: ReplanSource, task: TaskDefinition, x: float
    ) -> None:
        free = source.plan(request(task, model.home, NO_SPHERES))
        asked = request(task, model.home, wall(x))
        collision = model.collision_model(0.0)
        dense = np.linspace(0.0, 1.0, 300)
        path = free.derivative(dense * free.duration, 0)
        assert collision.first_collision(path, wall(x), 0.01) is not None  # it is in the way
        motion = source.plan(asked)
        path = motion.derivative(dense * motion.duration, 0)
        assert collision.first_collision(path, wall(x), 0.01) is None
        for got, wanted in zip(motion.state(0.0), asked.start, strict=True):
            assert np.allclose(got, wanted, atol=1e-8)
        tip = model.forward(motion.end)[0]
        assert np.allclose(tip, TARGET.position + np.array([0.0, 0.0, 0.06]), atol=1e-5)
        assert motion.duration < 3.0 * free.duration
        check_limits(motion, model)

    def test_the_way_home_too(
        self, model: RobotModel, source: ReplanSource, task: TaskDefinition
    ) -> None:
        below = model.solve_ik(np.asarray(TARGET.position))
        motion = source.plan(request(task, below, wall(), stage=2))
        path = motion.derivative(np.linspace(0.0, motion.duration, 300), 0)
        collision = model.collision_model(None)
        assert collision.first_collision(path, wall(), 0.01) is None
        assert np.allclose(motion.end, model.home)
        check_limits(motion, model)

    def test_start_in_motion_is_joined_smoothly(
        self, model: RobotModel, source: ReplanSource, task: TaskDefinition
    ) -> None:
        moving = MotionState(model.home, np.full(model.n, 0.05), np.full(model.n, 0.1))
        motion = source.plan(dataclasses.replace(request(task, model.home, wall()), start=moving))
        for got, wanted in zip(motion.state(0.0), moving, strict=True):
            assert np.allclose(got, wanted, atol=1e-8)


class TestNoWay:
    """Refused, and why."""

    def test_goal_in_the_obstacle(
        self, model: RobotModel, source: ReplanSource, task: TaskDefinition
    ) -> None:
        on_top = np.array([[*TARGET.position, 0.09]])
        with pytest.raises(CollisionError, match=r"obstacle 0 at \d.*s; where it ends: "):
            source.plan(request(task, model.home, on_top))

    def test_start_in_the_obstacle(
        self, model: RobotModel, source: ReplanSource, task: TaskDefinition
    ) -> None:
        here = np.array([[*model.forward(model.home)[0], 0.03]])
        with pytest.raises(CollisionError, match="touch where it starts: spindle - obstacle"):
            source.plan(request(task, model.home, here))

    def test_a_line_has_no_way_around(
        self, model: RobotModel, source: ReplanSource, task: TaskDefinition
    ) -> None:
        above = model.solve_ik(TARGET.position + np.array([0.0, 0.0, 0.06]))
        beside = np.array([[*TARGET.position + np.array([0.0, -0.07, 0.02]), 0.05]])
        with pytest.raises(CollisionError, match="motion would touch: spindle - obstacle 0"):
            source.plan(request(task, above, beside, stage=1))


class Blocked(Clearance):
    """Finds something in the way of every motion."""

    def first_touch(self, motion: Motion, request: PlanRequest) -> Touch:
        return Touch(0.43, "forearm_link - obstacle 12")


def test_no_way_is_clear(model: RobotModel, config: SynthesisConfig, task: TaskDefinition) -> None:
    source = ReplanSource(model, config, Blocked(model, config), lambda: 0)
    with pytest.raises(CollisionError) as refusal:
        source.plan(request(task, model.home, wall()))
    assert re.fullmatch(
        r"motion would touch: forearm_link - obstacle 12 at 0.43 s; none of [4-9] ways around is "
        r"clear, the last: above and beside by -?0.\d\d m: forearm_link - obstacle 12 at 0.43 s",
        str(refusal.value),
    )


def test_without_obstacles_there_is_nothing_to_go_around(
    model: RobotModel, config: SynthesisConfig, task: TaskDefinition
) -> None:
    source = ReplanSource(model, config, Blocked(model, config), lambda: 0)
    with pytest.raises(CollisionError, match="at 0.43 s; no obstacle to go around"):
        source.plan(request(task, model.home, NO_SPHERES))


def test_what_the_deadline_leaves_is_tried_by_the_next_decision(
    model: RobotModel, config: SynthesisConfig, task: TaskDefinition
) -> None:
    ages_ms = iter([9, 9, 7, 9, 9, 7, 7, 9])  # of the trigger, each time the clock is looked at
    source = ReplanSource(model, config, Blocked(model, config), lambda: MS + next(ages_ms) * MS)
    tried = []
    for _ in range(4):
        with pytest.raises(CollisionError, match="ways around tried when time was over") as refusal:
            source.plan(request(task, model.home, wall(), trigger_ns=MS))
        tried.append(int(str(refusal.value).split("; ")[1].split(" of ")[0]))
    assert tried == [1, 2, 4, 5]


def test_a_corrected_motion_that_would_touch_is_replanned(
    model: RobotModel, config: SynthesisConfig, task: TaskDefinition
) -> None:
    clearance = Clearance(model, config)
    decider = Decider(model, config, ReplanSource(model, config, clearance), clearance)
    start = MotionState.at_rest(model.home)
    stage = task.stages[0]
    planned = decider.decide(stage, make_match(TARGET), start, NO_SPHERES)
    stored = planned.motion.to_behavior(stage.subtask, model.joint_names, TARGET)
    hit = make_match(TARGET, hit=True, behavior=stored, entry=3)
    reused = decider.decide(stage, hit, start, NO_SPHERES)
    assert (reused.reused, reused.refused) == (True, "")
    # from rest the cache's guard has tested it
    assert decider.decide(stage, hit, start, wall()).reused
    moving = start._replace(velocity=np.full(model.n, 0.1))
    led = decider.decide(stage, hit, moving, wall())
    assert not led.reused
    assert led.refused.startswith("motion would touch: spindle - obstacle ")
    path = led.motion.derivative(np.linspace(0.0, led.motion.duration, 300), 0)
    assert model.collision_model(0.0).first_collision(path, wall(), 0.01) is None


def test_a_task_whose_way_stays_blocked_fails_and_says_why(rig: Rig, task: TaskDefinition) -> None:
    rig.target = TARGET
    rig.synthesizer.obstacles = np.array([[*TARGET.position, 0.09]])
    rig.start(task)
    rig.run_until(lambda: not rig.stack.active)
    assert not rig.stack.outcome.success
    assert "stage 'approach': motion would touch" in rig.stack.outcome.message
    assert "where it ends: " in rig.stack.outcome.message
    assert rig.chunks == []


def test_a_resumed_motion_into_whose_way_something_came_is_replanned(
    rig: Rig, task: TaskDefinition
) -> None:
    rig.target = TARGET
    rig.start(task)
    rig.run_until(lambda: rig.synthesizer.tasks.phase(rig.now_ns) > 0.1)
    rig.synthesizer.tasks.interrupt("hazard", "somebody reaches in", rig.now_ns)
    rig.run(0.5)
    rig.synthesizer.obstacles = wall()
    assert rig.synthesizer.tasks.resume("hazard", rig.now_ns)
    rig.arrive()
    reports = [report.message for report in rig.synthesizer.tasks.reports]
    assert any(
        text.startswith("replanned on resume: motion would touch: spindle - ") for text in reports
    )
    collision = rig.model.collision_model(0.0)
    path = np.array([row[1] for row in rig.track[::10]])
    assert collision.first_collision(path, wall(), 0.005) is None
