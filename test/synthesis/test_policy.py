"""A policy as a source of motions: the decision is open while it thinks; bad answers are named."""

from __future__ import annotations

import numpy as np
import pytest
from policies import Straight
from synthesis_rig import MS, Rig

from kv_action_router.contracts import FloatArray, UpdateOperation
from kv_action_router.errors import ConfigError, LimitError, PlanPendingError, PolicyError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.policy import Observation
from kv_action_router.synthesis.policy_process import PolicyProcess, load_policy
from kv_action_router.synthesis.policy_source import PolicySource
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import MotionState
from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer
from kv_action_router.tasks.stages import ConfigurationGoal, StageDefinition, TaskDefinition


class Told:
    """An asker that is told what to answer."""

    period = 0.1

    def __init__(self) -> None:
        self.asked: list[Observation] = []
        self.actions: FloatArray | None = None
        self.wrong = ""

    def ask(self, observation: Observation) -> None:
        self.asked.append(observation)

    def answer(self) -> FloatArray | None:
        if self.wrong:
            raise PolicyError(self.wrong)
        return self.actions


@pytest.fixture(scope="module")
def model() -> RobotModel:
    return RobotModel.load("ur5e")


def request(model: RobotModel) -> PlanRequest:
    stage = StageDefinition("away", "away_v1", ConfigurationGoal("home"), end=())
    return PlanRequest(stage, MotionState.at_rest(np.array(model.home)), None, np.zeros((0, 4)))


class Bench:
    def __init__(self, model: RobotModel) -> None:
        self.now_ns = 0
        self.asker = Told()
        config = SynthesisConfig(policy_time_limit=1.0)
        self.source = PolicySource(model, config, self.asker, clock=lambda: self.now_ns)
        self.request = request(model)
        self.good = Straight().act(Observation("away", np.array(model.home), None, None, None))


@pytest.fixture
def bench(model: RobotModel) -> Bench:
    return Bench(model)


def test_a_policy_is_asked_once_and_its_motion_comes_when_it_is_there(bench: Bench) -> None:
    with pytest.raises(PlanPendingError, match="was asked for stage 'away'"):
        bench.source.plan(bench.request)
    bench.now_ns = 80 * MS
    with pytest.raises(PlanPendingError, match="thinking for 80 ms"):
        bench.source.plan(bench.request)
    bench.asker.actions = bench.good
    motion = bench.source.plan(bench.request)
    assert len(bench.asker.asked) == bench.source.calls == 1
    assert np.allclose(motion.start, bench.request.start.position)
    assert np.allclose(motion.end, bench.good[-1], atol=1e-6)
    assert np.abs(motion.derivative(0.0, 1)).max() < 1e-6
    with pytest.raises(PlanPendingError, match="was asked"):  # the next miss asks again
        bench.source.plan(bench.request)


def test_a_policy_that_is_too_slow_is_named(bench: Bench) -> None:
    with pytest.raises(PlanPendingError):
        bench.source.plan(bench.request)
    bench.now_ns = 1_001 * MS
    with pytest.raises(PolicyError, match=r"must answer within 1 s, waited 1\.00"):
        bench.source.plan(bench.request)


@pytest.mark.parametrize(
    ("spoil", "error", "message"),
    [
        (lambda a: a[:, :5], PolicyError, r"actions must be \(h, 6\), got \(11, 5\)"),
        (lambda a: a[0], PolicyError, r"got \(6,\)"),
        (lambda a: a[:1], PolicyError, "actions must be 2 to 1000, got 1"),
        (lambda a: np.where(a == a[3], np.nan, a), PolicyError, "must be finite"),
        (lambda a: a + 8.0, LimitError, r"would bring shoulder_pan_joint to .* rad, limit 6\.283"),
    ],
)
def test_what_is_no_motion_is_refused(bench: Bench, spoil, error, message) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(PlanPendingError):
        bench.source.plan(bench.request)
    bench.asker.actions = spoil(bench.good)
    with pytest.raises(error, match=message):
        bench.source.plan(bench.request)
    bench.asker.actions = bench.good  # and the next question gets its answer
    with pytest.raises(PlanPendingError):
        bench.source.plan(bench.request)
    bench.source.plan(bench.request)


def test_a_task_waits_for_the_policy_and_then_asks_nobody(
    model: RobotModel, task: TaskDefinition
) -> None:
    """A whole task whose misses ask a policy that plans as the replan source does, 80 ms later."""
    rig = Rig(model)
    planner = ReplanSource(model, rig.config)
    asked: list[int] = []

    class Planner(Told):
        period = 0.05

        def ask(self, observation: Observation) -> None:
            asked.append(rig.now_ns)
            stage = rig.synthesizer.tasks.stack.stage
            start = MotionState.at_rest(observation.position)
            motion = planner.plan(PlanRequest(stage, start, observation.target, np.zeros((0, 4))))
            count = max(3, round(motion.duration / self.period) + 1)
            self.period = motion.duration / (count - 1)
            self.ready = motion.derivative(np.linspace(0.0, motion.duration, count), 0)

        def answer(self) -> FloatArray | None:
            return self.ready if rig.now_ns - asked[-1] > 80 * MS else None

    source = PolicySource(model, rig.config, Planner(), clock=lambda: rig.now_ns)
    rig.synthesizer = BehaviorSynthesizer(
        model, rig.config, source=source, clock=lambda: rig.now_ns, first_decision=10
    )
    tasks = rig.synthesizer.tasks
    for calls_before in (0, 3):  # in the second round every decision is a hit
        rig.start(task)
        for _ in task.stages:
            rig.run_until(lambda: not rig.stack.awaiting)
            if calls_before == 0:
                assert rig.now_ns - asked[-1] > 80 * MS
            rig.arrive()
        assert rig.stack.outcome.success
        while tasks.updates:
            update = tasks.updates.popleft()
            if update.operation is UpdateOperation.INSERT:
                rig.entries[update.behavior.subtask] = (len(rig.entries) + 1, update.behavior)
        assert source.calls == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("policies", "policy must be package.module:function"),
        ("no_such_module:make", "a function that can be imported"),
        ("policies:no_such", "a function that can be imported"),
        ("policies:none", "a policy with 'act'"),
        ("policies:broken", "no weights"),
    ],
)
def test_a_policy_that_cannot_be_made_is_named(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PolicyProcess(name)


def test_a_policy_answers_from_its_process(wait_until, model: RobotModel) -> None:  # type: ignore[no-untyped-def]
    home = np.array(model.home)
    process = PolicyProcess("policies:slow")
    try:
        assert process.period == load_policy("policies:slow").period
        process.ask(Observation("first", home, home, None, np.zeros((0, 4))))
        assert process.answer() is None  # it thinks
        process.ask(Observation("second", home + 1.0, home, None, np.zeros((0, 4))))
        answers = []

        def answered() -> bool:
            actions = process.answer()
            if actions is not None:
                answers.append(actions)
            return bool(answers)

        wait_until(answered, 30.0, "the newest answer")
        assert np.allclose(answers[0][0], home + 1.0)
        assert process.answer() is None
    finally:
        process.close()


def test_failures_of_a_policy_are_told(wait_until, model: RobotModel) -> None:  # type: ignore[no-untyped-def]
    home = np.array(model.home)
    process = PolicyProcess("policies:failing")

    def told(stage: str) -> str:
        process.ask(Observation(stage, home, home, None, np.zeros((0, 4))))

        def error() -> str:
            try:
                process.answer()
            except PolicyError as failure:
                return str(failure)
            return ""

        text: str = wait_until(error, 30.0, "the failure")
        return text

    try:
        assert "the policy failed: RuntimeError: no idea" in told("any")
        assert "the policy's process has ended" in told("die")
    finally:
        process.close()
