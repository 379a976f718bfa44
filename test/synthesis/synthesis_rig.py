"""A pretended robot, injector and cache around the synthesizer, in pretended time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kv_action_router.contracts import (
    CHUNK_PERIOD,
    BehaviorValue,
    CacheMatch,
    ChunkKind,
    Decision,
    ExecutionFeedback,
    InjectorEvent,
    InjectorState,
    JointSample,
    MatchGlance,
    MissReason,
    Pose,
    Stage,
    StageCondition,
    TargetEstimate,
    TrajectoryChunk,
    Trigger,
)
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer
from kv_action_router.tasks.stages import TaskDefinition

MS = 1_000_000
NO_SPHERES = np.zeros((0, 4))


def pose(x: float, y: float, z: float = 0.01) -> Pose:
    """Return a target on the table."""
    return Pose(np.array([x, y, z]))


def make_match(
    target: Pose | None,
    *,
    decision_id: int = 1,
    trigger_ns: int = 0,
    trigger: Trigger = Trigger.JOINT_STATE,
    hit: bool = False,
    is_decision: bool = True,
    behavior: BehaviorValue | None = None,
    entry: int = 0,
    deviation: float = 0.0005,
    names: tuple[str, ...] = (),
    position: np.ndarray | None = None,
    published_ns: int = 0,
) -> CacheMatch:
    """Return a match with everything that the synthesizer reads."""
    estimate = None
    if target is not None:
        estimate = TargetEstimate(target, np.eye(6) * deviation**2)
    return CacheMatch(
        decision=Decision(
            trace_id=7,
            trigger_monotonic_ns=trigger_ns,
            stage_ns=(trigger_ns, trigger_ns, published_ns or trigger_ns, 0, 0),
            decision_id=decision_id,
            domain="robot",
            robot_id="robot",
        ),
        trigger=trigger,
        hit=hit,
        is_decision=is_decision,
        miss_reason=MissReason.NONE if hit else MissReason.EMPTY,
        reason="hit" if hit else "no candidate",
        similarity=0.95,
        threshold=0.85,
        margin=0.1,
        target_similarity=0.95,
        target_minimum=0.75,
        worst_slice="body",
        worst_slice_similarity=0.9,
        guard="",
        entry_id=entry,
        entry_version=1 if entry else 0,
        subtask="",
        behavior=behavior,
        target=estimate,
        target_age=0.01,
        vector=np.linspace(-1.0, 1.0, 64, dtype=np.float32),
        joints=JointSample(
            names,
            np.zeros(len(names)) if position is None else position,
            np.zeros(len(names)),
            np.zeros(len(names)),
            trigger_ns,
        ),
    )


def glance_at(match: CacheMatch) -> MatchGlance:
    """Return what a look at a match tells."""
    return MatchGlance(
        match.decision.decision_id,
        match.decision.trigger_monotonic_ns,
        match.decision.stage_ns[Stage.MATCH],
        match.trigger,
        match.hit,
        match.is_decision,
    )


@dataclass
class Rig:
    """Plays chunks perfectly; ``step`` lets 5 ms pass: joints, feedback, a key's match, a tick."""

    model: RobotModel
    config: SynthesisConfig = field(default_factory=SynthesisConfig)
    target: Pose | None = field(default_factory=lambda: pose(0.5, 0.1))

    def __post_init__(self) -> None:
        self.now_ns = 1_000 * MS
        self.synthesizer = BehaviorSynthesizer(
            self.model, self.config, clock=lambda: self.now_ns, first_decision=10
        )
        self.epoch = 3
        self.state = InjectorState.HOLD
        self.setpoint = np.array(self.model.home)
        self.velocity = np.zeros(self.model.n)
        self.offset = np.zeros(self.model.n)  # of the measured from the set-point
        self.chunk: TrajectoryChunk | None = None
        self.chunks: list[TrajectoryChunk] = []
        self.track: list[tuple[int, np.ndarray, np.ndarray]] = []
        self.answered = 0
        self.entries: dict[str, tuple[int, BehaviorValue]] = {}
        self.lost: set[int] = set()
        self.answer_matches = True
        self.feedback_flows = True
        self.trigger_age_ns = 2 * MS
        self.steps = 0
        self.late_decisions = 0  # that come too late at the injector
        self.needs_decision = False  # as after a stop or fail-safe

    # --- the world ------------------------------------------------------------------------

    def play(self) -> None:
        """Follow the chunk in force up to now."""
        chunk = self.chunk
        if chunk is None or self.state in (InjectorState.STOPPED, InjectorState.FAIL_SAFE):
            return
        time = (self.now_ns - chunk.anchor_ns) * 1.0e-9
        row = time / CHUNK_PERIOD
        n = self.model.n
        if row > 99.0:
            if chunk.ends_at_rest:
                self.setpoint, self.velocity = chunk.samples[-1, :n].copy(), np.zeros(n)
                return
            self.state = InjectorState.RAMP
            self.velocity = np.zeros(n)
            return
        low = min(int(row), 98)
        mixed = chunk.samples[low] + (row - low) * (chunk.samples[low + 1] - chunk.samples[low])
        self.setpoint, self.velocity = mixed[:n].copy(), mixed[n:].copy()

    def adopt(self, chunk: TrajectoryChunk | None) -> None:
        """Take a chunk as the injector does."""
        if chunk is None:
            return
        self.chunks.append(chunk)
        if chunk.decision.epoch != self.epoch:
            return
        decides = chunk.kind is ChunkKind.DECISION
        if decides and self.late_decisions:
            self.late_decisions -= 1
            return
        if self.needs_decision and not decides:
            return
        self.needs_decision = False
        self.chunk, self.state = chunk, InjectorState.FOLLOW

    def feedback(self) -> ExecutionFeedback:
        """Return what the injector says now."""
        n = self.model.n
        return ExecutionFeedback(
            decision=Decision() if self.chunk is None else self.chunk.decision,
            state=self.state,
            event=InjectorEvent.NONE,
            reason="",
            monotonic_ns=self.now_ns,
            epoch=self.epoch,
            chunk_sequence=0 if self.chunk is None else self.chunk.decision.sequence,
            phase=float("nan") if self.chunk is None else self.chunk.phase,
            joints=self.model.joint_names,
            position=self.setpoint + self.offset,
            velocity=self.velocity,
            setpoint_position=self.setpoint,
            setpoint_velocity=self.velocity,
            command=np.zeros(n),
            command_interface="effort",
            confident=np.ones(n, dtype=bool),
            execution_version=1,
        )

    def joints(self) -> JointSample:
        """Return the measured joint state."""
        return JointSample(
            self.model.joint_names,
            self.setpoint + self.offset,
            self.velocity.copy(),
            np.full(self.model.n, np.nan),
            self.now_ns,
        )

    def match(self, *, image: bool = False) -> CacheMatch:
        """Answer as the cache manager does: each decision once, then refreshes of it."""
        stack = self.synthesizer.tasks.stack
        is_decision = stack.active and stack.decision_id != self.answered
        entry, behavior, hit = 0, None, False
        if stack.frames:
            entry, behavior = self.entries.get(stack.stage.subtask, (0, None))
            hit = bool(entry) and entry not in self.lost
        if is_decision:
            self.answered = stack.decision_id
        return make_match(
            self.target,
            decision_id=self.answered if stack.active else 0,
            trigger_ns=self.now_ns - self.trigger_age_ns,
            trigger=Trigger.IMAGE if image else Trigger.JOINT_STATE,
            hit=hit,
            is_decision=is_decision,
            behavior=behavior if hit else None,
            entry=entry,
            names=self.model.joint_names,
            position=self.setpoint + self.offset,
            published_ns=self.now_ns,
        )

    # --- time -----------------------------------------------------------------------------

    def step(self) -> None:
        """Let 5 ms pass."""
        self.steps += 1
        for _ in range(5):
            self.now_ns += MS
            self.play()
            self.track.append((self.now_ns, self.setpoint.copy(), self.velocity.copy()))
        synthesizer = self.synthesizer
        synthesizer.tracking.joints = self.joints()
        if self.feedback_flows and self.steps % 2 == 0:
            synthesizer.tracking.feedback = self.feedback()
        if self.answer_matches and self.steps % 2 == 0:
            match = self.match(image=self.steps % 6 == 0)
            if synthesizer.wants(glance_at(match), self.now_ns):
                self.adopt(synthesizer.on_match(match, self.now_ns))
        self.adopt(synthesizer.on_tick(self.now_ns))

    def run(self, seconds: float) -> None:
        """Let some time pass."""
        for _ in range(round(seconds / 0.005)):
            self.step()

    def run_until(self, done, seconds: float = 5.0) -> None:  # type: ignore[no-untyped-def]
        """Let time pass until ``done()``."""
        for _ in range(round(seconds / 0.005)):
            if done():
                return
            self.step()
        raise AssertionError(f"not within {seconds} s; stack is {self.synthesizer.tasks.stack}")

    def at_once(self) -> None:
        """Send what a change of the motion calls for, as the node does."""
        self.adopt(self.synthesizer.on_tick(self.now_ns))

    # --- the task -------------------------------------------------------------------------

    @property
    def stack(self):  # type: ignore[no-untyped-def]
        """The task stack."""
        return self.synthesizer.tasks.stack

    def start(self, definition: TaskDefinition) -> None:
        """Begin a task, with feedback and joints already there."""
        self.synthesizer.tracking.joints = self.joints()
        self.synthesizer.tracking.feedback = self.feedback()
        self.synthesizer.tasks.start(definition, "goal", self.now_ns)

    def condition(self, name: str, *, failure: bool = False, **changes: object) -> StageCondition:
        """Return a condition of the stage under way."""
        values: dict[str, object] = {
            "task": self.stack.frame.definition.name,
            "goal_id": self.stack.goal_id,
            "stage": self.stack.stage.name,
            "decision_id": self.stack.decision_id,
            "condition": name,
            "is_failure": failure,
            "signal": "motion_phase",
            "value": 1.0,
            "limit": 1.0,
            "held": 0.03,
            "monotonic_ns": self.now_ns,
        }
        values.update(changes)
        return StageCondition(**values)  # type: ignore[arg-type]

    def arrive(self) -> None:
        """Run to the end of the stage's motion and report it."""
        self.run_until(lambda: self.synthesizer.tasks.phase(self.now_ns) >= 1.0)
        self.run(0.05)
        name = self.stack.stage.end[0].name
        assert self.synthesizer.tasks.on_condition(self.condition(name), self.now_ns)
        self.at_once()

    def largest_steps(self) -> tuple[float, float]:
        """Return the largest change of set-point velocity and of acceleration per millisecond."""
        velocity = np.array([row[2] for row in self.track])
        change = np.diff(velocity, axis=0)
        return float(np.abs(change).max()), float(np.abs(np.diff(change, axis=0)).max())
