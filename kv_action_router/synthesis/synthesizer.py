"""Stage 3 without ROS: from matches, joint states and feedback to trajectory chunks.

``wants`` looks at every match (most only say that the cache is alive), ``on_match`` answers a
decision or follows a target that moved, ``on_tick`` lets the motion go on.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import numpy as np

from kv_action_router.contracts import (
    CONTINUATION_PERIOD,
    MATCH_VALIDITY_NS,
    TRIGGER_DEADLINE_NS,
    CacheMatch,
    ChunkKind,
    Decision,
    DecisionReason,
    FloatArray,
    MatchGlance,
    Stage,
    TaskStatus,
    TrajectoryChunk,
    Trigger,
)
from kv_action_router.errors import (
    CollisionError,
    PlanPendingError,
    ReanchorError,
    RouterError,
    SynthesisError,
)
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.chunk import ChunkMaker
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.decider import Decider
from kv_action_router.synthesis.execution import Execution
from kv_action_router.synthesis.following import target_displacement
from kv_action_router.synthesis.headers import answering, continuing
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.motion_in_force import MotionInForce
from kv_action_router.synthesis.patience import Patience
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.synthesis.source import BehaviorSource, PlanRequest
from kv_action_router.synthesis.suspended import Suspended
from kv_action_router.synthesis.task_runner import Report, TaskRunner
from kv_action_router.synthesis.tracking import Tracking

_CONTINUATION_NS = int(CONTINUATION_PERIOD * 1e9)
_TICK_NS = 5_000_000  # the owner's: a continuation goes out at the tick nearest to its time


class BehaviorSynthesizer:
    """Decides what the injector is asked to follow. Not thread safe.

    Invariant: within one epoch the reference is continuous in position, velocity and acceleration,
    whatever message comes; sequence numbers only rise; a chunk is handed out only while its trigger
    is at most 15 ms old, the injector is heard and would take it.

    Attributes:
        tracking: newest joint state and feedback; the owner puts them in.
        obstacles: spheres x, y, z, r in the base frame [m] (k, 4); the owner puts them in.
        tasks: the task under way.
        decisions_dropped: decisions whose trigger was too old when their chunk was ready.
        refreshes_dropped: the same for refreshes.
    """

    def __init__(
        self,
        model: RobotModel,
        config: SynthesisConfig,
        *,
        source: BehaviorSource | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
        first_decision: int = 1,
    ) -> None:
        clearance = Clearance(model, config)
        planned = source or ReplanSource(model, config, clearance, clock)
        self.tracking = Tracking(model.joint_names, config, model.spindles.tolist())
        self.obstacles: FloatArray = np.zeros((0, 4))
        self._decider = Decider(model, config, planned, clearance)
        self.motion = MotionInForce(self._decider, MotionLimits.of(model), self.tracking)
        self.tasks = TaskRunner(model, config, self.tracking, self.motion, first_decision)
        self.decisions_dropped = 0
        self.refreshes_dropped = 0
        self._config = config
        self._clock = clock
        self._chunks = ChunkMaker(model.joint_names)
        self._header = Decision()
        self._match_ns = 0
        self._sent_ns = 0
        self._sequence = 0
        self._decision_sequence = 0
        self._decision_ns = 0
        self._decision_id = 0
        self._asked = (0, 0)  # sequence and time of the oldest chunk that may be waited for
        self._attempts = 0
        self._patience = Patience(config.resume_patience)

    @property
    def hit(self) -> bool:
        """Whether the decision in force came from the cache."""
        return self.tasks.execution is not None and self.tasks.execution.match.hit

    def wants(self, glance: MatchGlance, now_ns: int) -> bool:
        """Note that the cache is alive; return whether the whole match is needed."""
        self._match_ns = glance.published_ns or now_ns
        stack, execution = self.tasks.stack, self.tasks.execution
        if stack.status != TaskStatus.RUNNING or glance.decision_id != stack.decision_id:
            return False
        if execution is None:
            return stack.awaiting
        lost = execution.decision_hit and not glance.hit
        image = glance.trigger == Trigger.IMAGE and execution.stage.follow_target
        return stack.awaiting or lost or image

    def due(self, now_ns: int) -> bool:
        """Say whether :meth:`on_tick` would send something."""
        if self.motion.reference is None:
            return False
        return self.motion.changed or now_ns - self._sent_ns >= _CONTINUATION_NS - _TICK_NS // 2

    def on_match(self, match: CacheMatch, now_ns: int) -> TrajectoryChunk | None:
        """Take a match; return the chunk of a decision, or of a target that moved."""
        self._header = match.decision
        self._match_ns = match.decision.stage_ns[Stage.MATCH] or now_ns
        self.tasks.watch(now_ns)
        stack = self.tasks.stack
        if stack.status != TaskStatus.RUNNING or match.decision.decision_id != stack.decision_id:
            return None
        if not self.tracking.may_move(now_ns) or not self.tracking.sees_joints(now_ns):
            return None
        if stack.awaiting:
            return self._decide(match, now_ns)
        execution = self.tasks.execution
        if execution is not None and execution.decision_hit and not match.hit:
            self.tasks.invalidate(
                f"entry in force was lost: {match.reason}", now_ns, blames_entry=False
            )
            return None
        if match.trigger == Trigger.IMAGE:
            return self._follow(match, now_ns)
        return None

    def on_tick(self, now_ns: int) -> TrajectoryChunk | None:
        """Let time pass; return a continuation when one is due.

        Call it at once after what changes the motion: a condition, an interruption, a cancel.
        """
        self.tasks.watch(now_ns)
        tracking, motion = self.tracking, self.motion
        if self._decision_was_not_taken():
            error = SynthesisError("the injector did not take the decision's chunk")
            self._give_up(error, now_ns)
            return None
        if not self.due(now_ns):
            return None
        if now_ns - self._match_ns > MATCH_VALIDITY_NS:
            return None
        if not tracking.may_move(now_ns) or not tracking.just_saw_joints(now_ns):
            return None
        execution, stage = self.tasks.execution, None
        if execution is not None:
            stage = execution.stage
        try:
            # Where it stands, near enough to pass for followed, it may refuse all that come.
            if tracking.passed_over(*self._asked):
                motion.join(stage, now_ns)
                self._asked = (0, 0)
            else:
                motion.confirmed(stage, now_ns)
        except SynthesisError as error:
            self._give_up(error, now_ns, blames_entry=motion.held_back)
            return None
        chunk = self._chunk(now_ns, None, ChunkKind.CONTINUATION)
        if not self.tasks.stack.active and motion.at_rest(now_ns):
            motion.drop()  # the last chunk stands still: the injector holds it
        return chunk

    # --- decisions ----------------------------------------------------------------------------

    def _decide(self, match: CacheMatch, now_ns: int) -> TrajectoryChunk | None:
        stack, stage = self.tasks.stack, self.tasks.stack.stage
        if self._too_old(match, now_ns):
            self._drop_decision(match, now_ns)
            return None
        if stack.decision_reason == DecisionReason.RESUMED and self._may_go_on(match):
            kept = self.tasks.suspended.taken_up
            if kept is not None and self._patience.waits(self.obstacles, now_ns):
                return None
            try:
                if kept is None:
                    return self._go_on(match, now_ns)
                return self._take_up(kept, match, now_ns)
            except RouterError as error:
                blocked = kept is not None and isinstance(error, CollisionError)
                if blocked and self._patience.blocked(stack.decision_id, self.obstacles, now_ns):
                    return None
                self._report(error.error_code, f"replanned on resume: {error}")
        if self.tasks.suspended.taken_up is not None:
            self.tasks.give_up_suspended()
        start = self.motion.start_state(now_ns)
        try:
            origin = self.tasks.origin_of(start.position)
            decided = self._decider.decide(stage, match, start, self.obstacles, origin)
        except PlanPendingError:
            return None  # the decision stays open
        except RouterError as error:
            self._attempts += 1
            if self._attempts >= self._config.plan_attempts:
                self._attempts = 0
                text = f"stage {stage.name!r}: {error}"
                self.tasks.fail(error.error_code, text, now_ns, blames_entry=False)
            return None
        ready_ns = self._clock()
        if self._too_old(match, ready_ns):
            self._drop_decision(match, ready_ns)
            return None
        self._attempts = 0
        self.motion.begin(decided.motion, now_ns)
        self.tasks.execution = Execution.of(
            match, stage, decided.motion, decided.target, decided.reused, now_ns
        )
        stack.answer(stack.decision_id, task_hit=match.hit, behavior_hit=decided.reused)
        if decided.refused:
            self._report(ReanchorError.error_code, f"replanned: {decided.refused}")
        return self._chunk(now_ns, match.decision, ChunkKind.DECISION)

    def _may_go_on(self, match: CacheMatch) -> bool:
        """Say whether an interrupted motion is still the right one."""
        execution = self.tasks.execution
        if execution is None:
            return False
        if self.motion.reference is None and self.tasks.suspended.taken_up is None:
            return False
        stage = execution.stage
        if not stage.needs_target or execution.target is None or match.target is None:
            return True
        way = np.asarray(match.target.pose.position) - execution.target.position
        moved, limit = float(np.sqrt(way @ way)), self._config.resume_distance
        if not stage.follow_target:  # nothing would make up for it
            limit = min(limit, stage.tolerance)
        if moved <= limit:
            return True
        text = "replanned on resume: the target moved during the interruption"
        self.tasks.reports.append(Report(ReanchorError.error_code, text, moved, limit))
        return False

    def _go_on(self, match: CacheMatch, now_ns: int) -> TrajectoryChunk | None:
        """Speed up again on the interrupted path, from the phase at which it stands.

        Raises:
            CollisionError: something has come into its way.
        """
        execution, stack = self.tasks.execution, self.tasks.stack
        reference = self.motion.reference
        assert execution is not None
        assert reference is not None
        start = reference.state(now_ns)
        request = PlanRequest(execution.stage, start, execution.target, self.obstacles, match)
        self._decider.check_rest(reference, request, now_ns)
        try:
            self.motion.confirmed(execution.stage, now_ns)
        except SynthesisError as error:
            self._give_up(error, now_ns)
            return None
        self.motion.release(now_ns)
        execution.go_on(match, now_ns)
        hit = match.hit and execution.reused
        stack.answer(stack.decision_id, task_hit=match.hit, behavior_hit=hit)
        return self._chunk(now_ns, match.decision, ChunkKind.DECISION)

    def _take_up(self, kept: Suspended, match: CacheMatch, now_ns: int) -> TrajectoryChunk | None:
        """Join the motion that was laid aside to where the sequence has brought the robot.

        Raises:
            SynthesisError: not inside the limits, or something is in the way.
        """
        execution, stack = kept.execution, self.tasks.stack
        start = self.motion.start_state(now_ns)
        request = PlanRequest(execution.stage, start, execution.target, self.obstacles, match)
        motion, phase = self._decider.take_up(kept.reference, request, now_ns)
        ready_ns = self._clock()
        if self._too_old(match, ready_ns):
            self._drop_decision(match, ready_ns)
            return None
        self.tasks.suspended.taken_up = None
        self.motion.begin(motion, now_ns, phase)
        execution.go_on(match, now_ns)
        hit = match.hit and execution.reused
        stack.answer(stack.decision_id, task_hit=match.hit, behavior_hit=hit)
        return self._chunk(now_ns, match.decision, ChunkKind.DECISION)

    def _follow(self, match: CacheMatch, now_ns: int) -> TrajectoryChunk | None:
        """Move the end of the motion in force to where the target is seen."""
        execution, target = self.tasks.execution, match.target
        if execution is None or execution.target is None or target is None:
            return None
        stage = execution.stage
        displacement = target_displacement(execution, match, self._config, now_ns)
        if displacement is None:
            return None
        if self._too_old(match, now_ns):
            self.refreshes_dropped += 1
            return None
        try:
            followed = self.motion.follow_target(stage, displacement, now_ns)
            if followed is None:
                return None
            template = self._decider.moved_template(execution.template, displacement)
        except SynthesisError as error:
            self._report(error.error_code, f"target is not followed: {error}")
            return None
        if self._too_old(match, self._clock()):
            self.refreshes_dropped += 1
            return None
        self.motion.swap(followed[0], now_ns, followed[1])
        execution.template = template
        execution.target = dataclasses.replace(
            target.pose, position=execution.target.position + displacement
        )
        execution.followed_ns = now_ns
        return self._chunk(now_ns, match.decision, ChunkKind.REFRESH)

    def _decision_was_not_taken(self) -> bool:
        """Say whether the injector has passed over the decision's chunk.

        After a stop or fail-safe the injector follows nothing but a decision: continuations of one
        that was late would be refused for ever.
        """
        if self.motion.reference is None or self.tasks.stack.awaiting:
            return False
        return self.tracking.passed_over(self._decision_sequence, self._decision_ns)

    # --- small things -------------------------------------------------------------------------

    def _give_up(self, error: SynthesisError, now_ns: int, *, blames_entry: bool = False) -> None:
        """Ask for a fresh decision: the motion can't be joined to where the robot is.

        The entry behind it is to blame only where the robot could not follow the motion.
        """
        self._report(error.error_code, f"motion is given up: {error}")
        self.tasks.invalidate(str(error), now_ns, blames_entry=blames_entry)
        self.tasks.execution = None
        self.motion.drop()

    def _report(self, error_code: int, message: str) -> None:
        self.tasks.reports.append(Report(error_code, message))

    @staticmethod
    def _too_old(match: CacheMatch, now_ns: int) -> bool:
        return now_ns - match.decision.trigger_monotonic_ns > TRIGGER_DEADLINE_NS

    def _drop_decision(self, match: CacheMatch, now_ns: int) -> None:
        self.decisions_dropped += 1
        age = (now_ns - match.decision.trigger_monotonic_ns) * 1.0e-9
        limit = TRIGGER_DEADLINE_NS * 1.0e-9
        text = f"decision dropped: trigger is {age * 1e3:.1f} ms old, limit {limit * 1e3:g} ms"
        self.tasks.reports.append(Report(SynthesisError.error_code, text, age, limit))

    def _chunk(self, now_ns: int, decision: Decision | None, kind: ChunkKind) -> TrajectoryChunk:
        """Return the chunk from now on; ``decision`` caused it, None = it is a continuation."""
        reference, execution, tracking = self.motion.reference, self.tasks.execution, self.tracking
        feedback, joints = tracking.feedback, tracking.joints
        assert reference is not None
        newest, epoch = (0, 0) if feedback is None else (feedback.chunk_sequence, feedback.epoch)
        self._sequence = sequence = max(self._sequence, newest) + 1
        self._sent_ns = now_ns
        if newest >= self._asked[0]:
            self._asked = (sequence, now_ns)
        if kind is ChunkKind.DECISION:
            self._decision_sequence, self._decision_ns = sequence, now_ns
            self._decision_id = self.tasks.stack.decision_id
        self.motion.changed = False
        if decision is not None:
            header = answering(decision, sequence, epoch, self._clock())
        else:
            assert joints is not None
            # One that is awaited has no motion yet: what goes on is the answer to the one before.
            header = continuing(
                self._header, joints.receipt_ns, self._decision_id, sequence, epoch, self._clock()
            )
        if execution is None:
            return self._chunks.make(
                reference, now_ns, header, kind, phase=0.0, task=self.tasks.task
            )
        return self._chunks.make(
            reference,
            now_ns,
            header,
            kind,
            phase=self.tasks.phase(now_ns),
            entry=execution.entry,
            task=self.tasks.task,
            stage=execution.stage.name,
            outputs=execution.outputs,
            outputs_origin_ns=execution.outputs_ns,
        )
