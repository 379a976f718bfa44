"""What the injector may do: state, epoch, stop and fail-safe.

| state | leaves it for |
|---|---|
| INACTIVE | HOLD on the first complete joint state (STOPPED while a stop is engaged) |
| HOLD, FOLLOW, RAMP | FOLLOW on an admitted chunk, RAMP when chunks run out, HOLD at rest |
| STOPPED | HOLD, when the stop is released at rest |
| FAIL_SAFE | HOLD at rest once its cause is gone; STOPPED while a stop is engaged |

In HOLD after a stop or a fail-safe only a fresh decision is followed.

From any state: a stop goes to STOPPED, a lost source, or a stop that asks for it, to FAIL_SAFE.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from kv_action_router.contracts import InjectorEvent, InjectorState, TrajectoryChunk
from kv_action_router.injection.auxiliary import AuxiliarySchedule
from kv_action_router.injection.chunk_gate import ChunkGate, RefusalError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.drive_stops import DRIVES, DriveStops
from kv_action_router.injection.drives import Drives
from kv_action_router.injection.events import Event
from kv_action_router.injection.failsafe import FailSafe
from kv_action_router.injection.measurement import JointTracker
from kv_action_router.injection.set_point import Path, SetPoint
from kv_action_router.injection.signals import Command
from kv_action_router.injection.stop_latch import StopLatch, StopRequest
from kv_action_router.injection.supervisor import Supervisor

_CLEAR_NS = 100_000_000  # a cause is gone when it has been away for this long

_INACTIVE, _HOLD, _FOLLOW = InjectorState.INACTIVE, InjectorState.HOLD, InjectorState.FOLLOW
_RAMP, _FAIL_SAFE = InjectorState.RAMP, InjectorState.FAIL_SAFE
_CHUNK = Path.CHUNK
MOVING_STATES = (_HOLD, _FOLLOW, _RAMP)


class Modes:
    """The injector's state machine.

    Invariant: a chunk is followed in the state FOLLOW only, and only with the epoch in force; the
    epoch rises on activation, stop and fail-safe, and whatever was under way is left then.

    Attributes:
        state: as in the feedback.
        epoch: in force.
        chunk: followed, or followed last in this epoch; None = none.
        reason: why the state is what it is, for people.
        events: newest last; whoever reads them takes them from the left.
        release_answer: of the last request to release the stop, once there is one.
    """

    def __init__(
        self,
        config: InjectionConfig,
        joints: JointTracker,
        set_point: SetPoint,
        drives: Drives,
        gate: ChunkGate,
        command: Command,
        epoch: int,
    ) -> None:
        self._config = config
        self._joints = joints
        self._set_point = set_point
        self._drives = drives
        self._gate = gate
        self._command = command
        self._chunk_timeout_ns = round(config.chunk_timeout * 1e9)
        self._adopted_ns = 0
        self._cause_ns = 0
        self._blamed: set[str] = set()  # for the fail-safe under way
        self._before = (InjectorState.HOLD, "", 0)
        self._leaving = self._release_asked = False
        self.epoch = epoch
        self.state = InjectorState.INACTIVE
        self.reason = ""
        self.chunk: TrajectoryChunk | None = None
        self._chunk_before: TrajectoryChunk | None = None
        self.events: deque[Event] = deque(maxlen=256)
        self.stop = StopLatch()
        self.fail_safe = FailSafe(config, len(joints.names))
        self.auxiliary = AuxiliarySchedule()
        self.supervisor = Supervisor(config)
        self.drive_stops = DriveStops()
        self.release_answer: tuple[bool, str] | None = None

    def activate(self, now_ns: int) -> None:
        """Begin anew: nothing is sent before a complete joint state."""
        self.supervisor.start(now_ns)
        self.drive_stops.reset(now_ns)
        self._new_epoch(needs_decision=False)
        self.state = InjectorState.INACTIVE
        self.reason = "waits for joint states"
        self._leaving = self._release_asked = False

    def come_to_rest(self) -> None:
        """Follow no chunk any more and brake."""
        self._leaving = True

    def ask_release(self) -> None:
        """Ask the next tick to release the stop; it sets ``release_answer``."""
        self.release_answer = None
        self._release_asked = True

    @property
    def resting(self) -> bool:
        """Whether set-point and joints stand still, or nothing is being sent."""
        if not self._command.send:
            return True
        return self._set_point.at_rest and self._joints.at_rest(self._config.rest_velocity)

    # --- once a tick -----------------------------------------------------------------------

    def supervise(self, now_ns: int, late_ns: int, stops: Sequence[StopRequest]) -> None:
        """Take stops and releases, judge what is alive, and change the state accordingly."""
        asked_before = self.stop.fail_safe
        for request in stops:
            if self.stop.receive(request):
                self._engage(now_ns)
        asked = self.stop.fail_safe and not asked_before
        if self._release_asked:
            self._release(now_ns)
        drives = self._drives
        source, reason = self.supervisor.judge(now_ns, late_ns, drives.hazard, drives.hazard_reason)
        if self.drive_stops.stopped:
            source, reason = self._mind_stopped_drives(now_ns, source, reason)
        if self.state is _FAIL_SAFE:
            self._stay_safe(now_ns, source, reason)
        elif source:
            self._enter_fail_safe(now_ns, source, reason)
        elif asked and self.state is not _INACTIVE:
            self._enter_fail_safe(now_ns, self.stop.source, self._why_stopped())
        elif self.state is _INACTIVE and self._joints.complete:
            self._start(now_ns)
        if self._leaving and self.state in MOVING_STATES:
            self._set_point.brake(self._config.stop_deceleration, self._drives.limits)
            at_rest = self._set_point.at_rest
            self.state = InjectorState.HOLD if at_rest else InjectorState.RAMP

    def check_may_move(self) -> None:
        """Refuse chunks in a state in which none may be followed.

        Raises:
            RefusalError: naming the state and its reason.
        """
        if self._leaving or self.state not in MOVING_STATES:
            what = "is being deactivated" if self._leaving else f"is in {self.state.name}"
            raise RefusalError(InjectorEvent.CHUNK_INVALID, f"the injector {what}: {self.reason}")
        if self.drive_stops.stopped:
            raise RefusalError(InjectorEvent.CHUNK_INVALID, "the drives have their brakes engaged")

    def follow(self, chunk: TrajectoryChunk, now_ns: int) -> None:
        """The set-point follows a chunk now."""
        self._before = (self.state, self.reason, self._adopted_ns)
        self._chunk_before = self.chunk
        self.state, self.reason, self.chunk = InjectorState.FOLLOW, "", chunk
        self._adopted_ns = now_ns

    def withdraw(self) -> None:
        """Take the last :meth:`follow` back."""
        self.state, self.reason, self._adopted_ns = self._before
        self.chunk = self._chunk_before

    def after_motion(self, now_ns: int, *, inside_limits: bool) -> None:
        """Let the state say what the set-point does, after it was advanced."""
        state, set_point = self.state, self._set_point
        if state is _RAMP and set_point.at_rest:
            self.state = _HOLD
        if state is not _FOLLOW:
            return
        if not inside_limits:
            self.state, self.reason = _RAMP, "the path broke the limits of a tick"
            self.say(InjectorEvent.CHUNK_INVALID, self.reason, now_ns, chunk=self.chunk)
            return
        silence = now_ns - self._adopted_ns
        path = set_point.path
        if path is _CHUNK and silence > self._chunk_timeout_ns:
            set_point.brake(self._config.starvation_deceleration, self._drives.limits)
            path = set_point.path
        if path is _CHUNK:
            return
        starved = path is Path.RAMP or not (self.chunk and self.chunk.ends_at_rest)
        self.state = InjectorState.RAMP if path is Path.RAMP else InjectorState.HOLD
        if starved:
            self.reason = f"no chunk for {silence * 1e-6:.0f} ms: comes to rest on the path"
            self.say(InjectorEvent.STARVED, self.reason, now_ns, chunk=self.chunk)

    def say(
        self,
        kind: InjectorEvent,
        reason: str,
        now_ns: int,
        *,
        chunk: TrajectoryChunk | None = None,
        command_ns: int = 0,
        source: str = "",
    ) -> None:
        """Append an event."""
        self.events.append(Event(kind, reason, now_ns, self.epoch, chunk, command_ns, source))

    # --- inside ------------------------------------------------------------------------------

    def _start(self, now_ns: int) -> None:
        """First command after activation: the measured state."""
        self._set_point.start(
            now_ns, self._joints.position, self._joints.velocity, self._drives.limits
        )
        values = self._command.values
        for i, speed in enumerate(self._joints.velocity):
            values[i] = speed if self._config.command_interface == "velocity" else 0.0
        self._command.send = True
        self.state = InjectorState.STOPPED if self.stop.engaged else InjectorState.HOLD
        self.reason = self.stop.reason if self.stop.engaged else ""
        self._gate.needs_decision = self.stop.engaged
        self.say(InjectorEvent.ACTIVATED, self.reason, now_ns)

    def _engage(self, now_ns: int) -> None:
        """Stop always wins: whatever is under way is left for a ramp to rest."""
        self._new_epoch(needs_decision=True)
        self.reason = self._why_stopped()
        if self.state in MOVING_STATES:
            self.state = InjectorState.STOPPED
            config, soon = self._config, self.stop.fail_safe  # the fail-safe follows at once
            share = config.fail_safe_deceleration if soon else config.stop_deceleration
            self._set_point.brake(share, self._drives.limits)
        self.say(InjectorEvent.STOPPED, self.reason, now_ns, source=self.stop.source)

    def _release(self, now_ns: int) -> None:
        self._release_asked = False
        if not self.stop.engaged:
            self.release_answer = (True, "no stop is engaged")
            return
        if not self.resting:
            self.release_answer = (False, "the arm has not come to rest yet: try again")
            return
        self.stop.release()
        if self.state is InjectorState.STOPPED:
            self.state = InjectorState.HOLD
            self.reason = "stop released: waits for a fresh decision"
        self.say(InjectorEvent.RELEASED, self.reason, now_ns)
        self.release_answer = (True, "released; a fresh decision is needed to move")

    def _enter_fail_safe(self, now_ns: int, source: str, reason: str) -> None:
        self._new_epoch(needs_decision=True)
        self.state = InjectorState.FAIL_SAFE
        self.reason = reason
        self._cause_ns = now_ns
        self._blamed = {source}
        self._drives.hazard = ""
        # A loop that was away for that long has been braked by the drive: it begins anew.
        heard = self._command.send and source not in (Supervisor.LOOP, DRIVES)
        self.fail_safe.begin(
            now_ns,
            self._command.values if heard else None,
            self._set_point,
            self._drives.limits,
            blind=source == Supervisor.JOINTS,
        )
        self.say(InjectorEvent.FAIL_SAFE, reason, now_ns, source=source)

    def _mind_stopped_drives(self, now_ns: int, source: str, reason: str) -> tuple[str, str]:
        """Give the drives their pause; return what is at fault, them where nothing else is."""
        own = self.drive_stops.judge()
        if not own[0]:
            return source, reason
        if self.state is not _FAIL_SAFE:
            self._enter_fail_safe(now_ns, *own)
        self.fail_safe.pause(now_ns)
        return (source, reason) if source else own

    def _stay_safe(self, now_ns: int, source: str, reason: str) -> None:
        if source:
            self._cause_ns = now_ns
            self.reason = reason
            if source not in self._blamed:  # one cause must not hide that there is another
                self._blamed.add(source)
                self.say(InjectorEvent.FAIL_SAFE, reason, now_ns, source=source)
            return
        gone = now_ns - self._cause_ns >= _CLEAR_NS and not self.drive_stops.stopped
        if gone and self.fail_safe.sends and self.fail_safe.reached:
            self.state = InjectorState.HOLD
            self.reason = "the cause is gone: waits for a fresh decision"
            self.say(InjectorEvent.RELEASED, self.reason, now_ns)
            if self.stop.engaged:
                self.state = InjectorState.STOPPED
                self.reason = self._why_stopped()

    def _why_stopped(self) -> str:
        return f"stop by {self.stop.source or 'unknown'}: {self.stop.reason}"

    def _new_epoch(self, *, needs_decision: bool) -> None:
        self.epoch += 1
        self._gate.new_epoch(needs_decision=needs_decision)
        self.auxiliary.clear()
        self.chunk = None
