"""The whole tick, without ROS: what was received goes in, the command comes out.

    inputs -> measure -> supervise -> consider the chunk -> move the set-point -> law -> command

One thread calls :meth:`InjectionController.tick`. Nothing here logs, locks or waits; what others
must know goes into ``modes.events``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kv_action_router.contracts import (
    TRIGGER_DEADLINE_NS,
    ExecutionValue,
    InjectorEvent,
    InjectorState,
    TrajectoryChunk,
)
from kv_action_router.errors import ChunkRefusedError, InjectionError
from kv_action_router.injection.chunk_gate import ChunkGate, RefusalError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.drives import Drives
from kv_action_router.injection.effort_law import EffortLaw, State
from kv_action_router.injection.events import Counters
from kv_action_router.injection.expected import ExpectedJoints
from kv_action_router.injection.laws import make_law
from kv_action_router.injection.measurement import JointTracker
from kv_action_router.injection.modes import Modes
from kv_action_router.injection.robot import JointModel
from kv_action_router.injection.set_point import SetPoint
from kv_action_router.injection.signals import Command, Inputs
from kv_action_router.tasks.rules import Rule

_INFINITE = math.inf
_INACTIVE, _FAIL_SAFE = InjectorState.INACTIVE, InjectorState.FAIL_SAFE


class InjectionController:
    """Turns chunks and joint states into commands.

    Invariants, for any sequence of inputs: commands are finite and inside the limits in force;
    set-points move by at most v_max dt and a_max dt a tick; a chunk is followed in the state FOLLOW
    only.

    Attributes:
        joints: measured state.
        set_point: where the joints should be.
        drives: execution values in force.
        modes: state, epoch, stop, fail-safe, events.
        command: the last one.
        counters: since activation.
    """

    def __init__(
        self,
        model: JointModel,
        config: InjectionConfig,
        values: ExecutionValue,
        *,
        epoch: int = 0,
        rules: Sequence[Rule] = (),
    ) -> None:
        """Prepare; nothing is sent before :meth:`activate`.

        Args:
            model: limits and dynamics; used by the thread that ticks only.
            config: parameters.
            values: execution values to start with.
            epoch: last one that may have been used before; the next is one higher.
            rules: rows of the response table that hit the execution layer.
        """
        n = len(model.joint_names)
        self.config = config
        self.joints = JointTracker(
            model, config.velocity_filter, round(config.joint_state_delay * 1e9)
        )
        self.set_point = SetPoint(model, config)
        self.drives = Drives(model, config, values, rules)
        self.command = Command([0.0] * n)
        self.counters = Counters()
        self._gate = ChunkGate(model, config, self.joints, self.set_point)
        self.modes = Modes(
            config, self.joints, self.set_point, self.drives, self._gate, self.command, epoch
        )
        self._law = make_law(model, config)
        self._effort_law = self._law if isinstance(self._law, EffortLaw) else None
        self._margin_ns = round(config.publish_margin * 1e9)
        self._kept = [0.0] * n  # command before the tick that adopted a chunk
        still = [0.0] * n
        own = self.set_point
        self._moving = State(own.position, own.velocity, own.acceleration)
        self._standing = State(own.position, still, still)
        self._measured = State(self.joints.position, self.joints.velocity, still)
        self._fresh = False  # a joint state was used in this tick
        self._expected = ExpectedJoints(self.joints, own)
        self._failed = False  # the last tick was in the fail-safe
        self._speaks = not config.dry_run
        self._last_ns = 0
        self._dt = 0.0

    @property
    def state(self) -> InjectorState:
        """What the injector does."""
        return self.modes.state

    @property
    def epoch(self) -> int:
        """In force."""
        return self.modes.epoch

    def activate(self, now_ns: int) -> None:
        """Begin: no command before a complete joint state, then hold what was measured."""
        self.counters = Counters()
        self.joints.reset()
        self.drives.reset()
        self._law.reset()
        self.modes.activate(now_ns)
        self.command.send = False
        self.command.adopting = None
        self._last_ns = now_ns

    def tick(self, now_ns: int, inputs: Inputs) -> Command:
        """Go on to an instant; a tick with dt <= 0 changes nothing and is counted.

        Args:
            now_ns: CLOCK_MONOTONIC [ns].
            inputs: what was received since the last tick.

        Returns:
            The command, the same object every time.
        """
        command, counters, modes = self.command, self.counters, self.modes
        if command.adopting is not None:
            self._commit(0)
        elapsed_ns = now_ns - self._last_ns
        if elapsed_ns <= 0:
            counters.refused_ticks += 1
            return command
        late_ns = elapsed_ns if counters.ticks else 0
        self._dt = elapsed_ns * 1e-9
        self._last_ns = now_ns
        counters.ticks += 1
        self._measure(now_ns, inputs)
        modes.supervise(now_ns, late_ns, inputs.stops)
        chunk = inputs.chunk or self._gate.waiting
        if chunk is not None:
            self._consider(now_ns, chunk)
        if modes.state is not _INACTIVE:
            self._move(now_ns)
            if self.drives.limits.all_confident:  # once, though a withdrawal moves again
                counters.confident_ticks += 1
        return command

    def malformed(self, reason: str, now_ns: int) -> None:
        """Note a chunk that could not even be read."""
        self.counters.chunks_refused += 1
        self.modes.say(InjectorEvent.CHUNK_INVALID, reason, now_ns, source="behavior_synthesizer")

    def withdraw(self, now_ns: int) -> Command:
        """Take back the chunk that this tick adopted: its first command would go out too late."""
        chunk = self.command.adopting
        if chunk is not None:
            self.command.adopting = None
            self.modes.withdraw()
            self.set_point.withdraw()
            self._law.restore()
            self.command.values[:] = self._kept
            age = now_ns - chunk.decision.trigger_monotonic_ns
            self._refuse(ChunkGate.late(age), now_ns, chunk)
            self._move(self._last_ns)
        return self.command

    def sent(self, published_ns: int) -> None:
        """Note that the command was published, and when [ns]."""
        self.counters.commands_sent += 1
        if self.command.adopting is not None:
            self._commit(published_ns)

    # --- inside ------------------------------------------------------------------------------

    def _commit(self, published_ns: int) -> None:
        chunk = self.command.adopting
        if chunk is None:
            return
        self.command.adopting = None
        self._gate.adopted(chunk)
        self.modes.auxiliary.adopt(chunk)
        self.counters.chunks_adopted += 1
        if published_ns - chunk.decision.trigger_monotonic_ns > TRIGGER_DEADLINE_NS:
            self.counters.late_commands_sent += 1
        self.modes.say(
            InjectorEvent.CHUNK_ADOPTED, "", self._last_ns, chunk=chunk, command_ns=published_ns
        )

    def _measure(self, now_ns: int, inputs: Inputs) -> None:
        supervisor, reading = self.modes.supervisor, inputs.joints
        self._fresh = False
        if reading is not None:
            if self.joints.update(*reading):
                self._fresh = True
                supervisor.joints_seen(min(now_ns, self.joints.oldest_ns()))
            supervisor.joints.doubt = self.joints.refusal
        imu_ns = inputs.imu_receipt_ns or (inputs.imu.receipt_ns if inputs.imu else 0)
        if imu_ns:
            supervisor.imu_seen(min(now_ns, imu_ns))
        if inputs.heartbeats:
            for name, receipt_ns in inputs.heartbeats.items():
                starting = name in inputs.starting
                supervisor.heartbeat(name, min(now_ns, receipt_ns), starting=starting)
        if inputs.drives is not None:
            self.modes.drive_stops.heard(inputs.drives)
        if inputs.concern_drives:
            self.modes.events.extend(self.drives.update(inputs, now_ns, self.modes.epoch))

    def _consider(self, now_ns: int, chunk: TrajectoryChunk) -> None:
        try:
            if chunk.decision.epoch == self.modes.epoch:
                self.modes.check_may_move()
            if not self._gate.admit(chunk, now_ns, self.modes.epoch, self.drives.limits):
                return
        except ChunkRefusedError as refusal:
            self._gate.waiting = None
            self._refuse(refusal, now_ns, chunk)
            return
        self._law.save()
        self._kept[:] = self.command.values
        self.modes.follow(chunk, now_ns)
        self.command.adopting = chunk
        trigger_ns = chunk.decision.trigger_monotonic_ns
        self.command.publish_before_ns = trigger_ns + TRIGGER_DEADLINE_NS - self._margin_ns

    def _refuse(self, error: ChunkRefusedError, now_ns: int, chunk: TrajectoryChunk) -> None:
        kind = error.kind if isinstance(error, RefusalError) else InjectorEvent.CHUNK_INVALID
        if kind is InjectorEvent.CHUNK_LATE:
            self.counters.chunks_late += 1
        else:
            self.counters.chunks_refused += 1
        self.modes.say(kind, str(error), now_ns, chunk=chunk, source="behavior_synthesizer")

    def _move(self, now_ns: int) -> None:
        modes, limits, command = self.modes, self.drives.limits, self.command
        values, joints = command.values, self.joints
        failing = modes.state is _FAIL_SAFE
        blind = not joints.complete or modes.supervisor.joints_lost(now_ns)
        reference, stiffness = self._moving, 1.0
        self._expected.note(seen=self._fresh)
        if failing:
            if not self._failed:
                self._let_go()
            self._step_fail_safe(now_ns, blind)
            stiffness = modes.fail_safe.stiffness
            if modes.fail_safe.still:
                reference = self._standing
        inside_limits = self.set_point.advance(now_ns, limits)
        if not inside_limits:
            self.counters.set_points_refused += 1
        modes.after_motion(now_ns, inside_limits=inside_limits)
        self._failed = failing
        measured = None if blind else self._measured if self._fresh else self._expected.state()
        self._law.compute(self._dt, reference, measured, limits, stiffness, values)
        command.send = True
        if failing:
            modes.fail_safe.mix(now_ns, values)
            command.send = modes.fail_safe.sends
        modes.drive_stops.sending(now_ns, sends=command.send and self._speaks)
        if not -_INFINITE < sum(values) < _INFINITE and not all(map(math.isfinite, values)):
            command.send = False
            raise InjectionError(f"the law made a command that is not finite: {values}")
        if self._effort_law is not None and not blind:
            wanted, given = self._effort_law.pid.unclamped, self._effort_law.efforts
            event = self.drives.watch(self._dt, wanted, given, joints.velocity, now_ns, modes.epoch)
            if event is not None:
                modes.events.append(event)
        if modes.auxiliary.waiting or command.auxiliary:
            command.auxiliary = modes.auxiliary.fire(now_ns)

    def _let_go(self) -> None:
        """Entering the fail-safe: an integral that was wound up against a block holds no load."""
        for i, (point, at) in enumerate(
            zip(self.set_point.position, self.joints.position, strict=True)
        ):
            if abs(point - at) > self.config.wind_up_error:
                self._law.release(i)

    def _step_fail_safe(self, now_ns: int, blind: bool) -> None:
        begun_anew = self.modes.fail_safe.step(
            now_ns,
            self.set_point,
            self.joints.position,
            self.joints.velocity,
            self.drives.limits,
            blind=blind,
            at_rest=self.joints.at_rest(self.config.rest_velocity),
        )
        if begun_anew:
            self._law.reset()
