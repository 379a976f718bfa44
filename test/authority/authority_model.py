"""Every interleaving of who may move the arm: a state space around the real rules.

State machine, stop latch, gate, synthesizer, task runner and task stack are the shipped code; what
is physical is a double. Messages are lost, late, doubled and out of order; nodes start again.

Assumptions, beside what the code guarantees: a process needs longer to start than a trigger may be
old (15 ms), so that chunks of an earlier process come too late, which is the same as that they are
lost; a restarted injector hears the latched stops before its first chunk.
"""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

from doubles import (
    NOW,
    OLD,
    REFERENCE,
    Arm,
    ChunksDouble,
    Controller,
    DeciderDouble,
    FailSafeDouble,
    Gate,
    JointsDouble,
    Motion,
    SetPointDouble,
    SupervisorDouble,
)

from kv_action_router.contracts import (
    CacheMatch,
    ChunkKind,
    Decision,
    InjectorState,
    TaskStatus,
    TrajectoryChunk,
    Trigger,
)
from kv_action_router.errors import TaskTransitionError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.events import Counters
from kv_action_router.injection.modes import MOVING_STATES, Modes
from kv_action_router.injection.set_point import Path
from kv_action_router.injection.signals import Command
from kv_action_router.injection.stop_latch import StopRequest
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.patience import Patience
from kv_action_router.synthesis.synthesizer import BehaviorSynthesizer
from kv_action_router.synthesis.task_runner import TaskRunner
from kv_action_router.synthesis.tracking import Tracking
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.frames import Frame, Interruption
from kv_action_router.tasks.stack import ACTIVE

_WHOLE = load_task("touch_target")
# How far a motion strays teaches the cache, and moves nothing: feedback holds no positions here.
TASK = dataclasses.replace(
    _WHOLE,
    stages=tuple(dataclasses.replace(stage, path_tolerance=math.inf) for stage in _WHOLE.stages),
)
STOPS = (
    StopRequest(True, "failure_monitor", "contact", 1),
    StopRequest(True, "operator", "button", 2),
)
NOT_ENGAGED = StopRequest(False, "anybody", "", 3)
FRAME, INTERRUPTION = Frame(TASK), Interruption("monitor", "near")
LONG_AGO = NOW - 1_000_000_000


class Bounds(NamedTuple):
    """How far the space goes: the injector's epochs, decisions, chunk numbers, chunks under way."""

    epochs: int
    decisions: int
    sequences: int
    in_flight: int


class ViolationError(AssertionError):
    """An invariant is broken; the message tells the way to it."""


class Sent(NamedTuple):
    """A chunk under way, and what was true when it was made."""

    epoch: int
    sequence: int
    kind: ChunkKind
    made_in: int  # the injector's real epoch
    stopped: bool  # a stop was engaged

    def chunk(self, *, late: bool) -> TrajectoryChunk:
        """Return it as it comes in; late = its trigger is older than 15 ms by then."""
        return _chunk(self, late)


class Heard(NamedTuple):
    """What the synthesizer knows of the injector."""

    state: InjectorState
    epoch: int
    sequence: int


class Action:
    """Something that may happen: what it is called, what does it, and to what."""

    __slots__ = ("act", "arguments", "name")

    def __init__(self, name: str, act: Callable[..., Any], *arguments: Any) -> None:
        self.name, self.act, self.arguments = name, act, arguments

    def __str__(self) -> str:
        return " ".join((self.name, *map(str, self.arguments)))


class State(NamedTuple):
    """All that decides what may happen next."""

    # injector
    mode: InjectorState
    epoch: int
    moving: bool
    path: Path
    followed: int  # sequence of the chunk in force; 0 = none
    last_sequence: int
    needs_decision: bool
    engaged: bool
    seen: tuple[int, ...]
    released: tuple[int, ...]
    lost: bool
    cause_gone: bool
    # network
    sent_stops: int  # how many of STOPS were ever engaged
    chunks: tuple[Sent, ...]
    # synthesizer
    heard: Heard | None
    numbered: int
    decided: int  # sequence of its newest decision
    status: TaskStatus
    decision: int
    awaiting: bool
    reason: int
    interrupted: bool
    motion_epoch: int  # -1 = no motion
    executes: bool
    # what the invariants remember
    due: bool  # a stop or fail-safe was, and no decision was followed since


class World:
    """One set of real objects, brought into a state before each action and read after it."""

    def __init__(self, bounds: Bounds, gate: type[Gate]) -> None:
        self.bounds = bounds
        self.arm = Arm()
        self.gate = gate(self.arm)
        self.modes = Modes(
            InjectionConfig(),
            JointsDouble(self.arm),  # type: ignore[arg-type]
            SetPointDouble(self.arm),  # type: ignore[arg-type]
            SimpleNamespace(limits=None, hazard="", hazard_reason=""),  # type: ignore[arg-type]
            self.gate,
            Command([]),
            0,
        )
        self.supervisor = SupervisorDouble()
        self.modes.supervisor = self.supervisor  # type: ignore[assignment]
        self.modes.fail_safe = FailSafeDouble(self.arm)  # type: ignore[assignment]
        self.controller = Controller(self.modes, self.gate)
        self.synthesizer = _synthesizer(self.arm)
        self.ghost: dict[str, Any] = {}
        self.state: State = None  # type: ignore[assignment]

    def first(self) -> State:
        """Return the state after both nodes were activated."""
        self.modes.activate(NOW)
        self.modes.supervise(NOW, 0, ())
        self.ghost = {
            "sent_stops": 0,
            "chunks": (),
            "due": False,
            "cause_gone": True,
        }
        return self.save()

    # --- states -------------------------------------------------------------------------------

    def load(self, state: State) -> None:
        """Bring everything into a state."""
        self.state = state
        modes, arm, gate, latch = self.modes, self.arm, self.gate, self.modes.stop
        modes.state, modes.epoch = state.mode, state.epoch
        modes.chunk = None if not state.followed else _in_force(state.followed)
        modes.events.clear()
        modes.reason = ""
        modes._cause_ns = LONG_AGO if state.cause_gone else NOW
        modes._adopted_ns = NOW
        modes._leaving = modes._release_asked = False
        modes._command.send = True
        arm.moving, arm.path = state.moving, state.path
        gate.last_sequence, gate.needs_decision = state.last_sequence, state.needs_decision
        gate.waiting = None
        latch.engaged = state.engaged
        latch._seen = deque((STOPS[i] for i in state.seen), maxlen=32)
        latch._released = deque((STOPS[i] for i in state.released), maxlen=32)
        self.supervisor.lost = state.lost
        self.controller.counters = Counters()
        self._load_synthesizer(state)
        self.ghost = {
            name: getattr(state, name)
            for name in (
                "sent_stops",
                "chunks",
                "due",
                "cause_gone",
            )
        }

    def _load_synthesizer(self, state: State) -> None:
        synthesizer = self.synthesizer
        tracking, motion, tasks = synthesizer.tracking, synthesizer.motion, synthesizer.tasks
        heard = state.heard
        tracking.feedback = None if heard is None else _feedback(heard)
        synthesizer._sequence, synthesizer._decision_sequence = state.numbered, state.decided
        synthesizer._decision_ns = NOW
        synthesizer._asked = (0, 0)
        synthesizer._attempts = 0
        motion.reference = None if state.motion_epoch < 0 else REFERENCE
        motion._epoch = state.motion_epoch
        motion.changed = False
        stack = tasks.stack
        stack.status, stack.decision_id, stack.awaiting = (
            state.status,
            state.decision,
            state.awaiting,
        )
        stack.decision_reason = state.reason  # type: ignore[assignment]
        stack.frames = [FRAME] if state.status in ACTIVE else []
        stack.interruptions = [INTERRUPTION] if state.interrupted else []
        stack._clock_ns = NOW
        tasks.execution = EXECUTION if state.executes else None
        tasks.updates.clear()
        tasks.reports.clear()

    def save(self) -> State:
        """Return the state that everything is in."""
        modes, latch, ghost = self.modes, self.modes.stop, self.ghost
        synthesizer = self.synthesizer
        stack, motion = synthesizer.tasks.stack, synthesizer.motion
        feedback: Any = synthesizer.tracking.feedback
        lost = self.supervisor.lost
        return State(
            modes.state,
            modes.epoch,
            self.arm.moving,
            self.arm.path,
            0 if modes.chunk is None else modes.chunk.decision.sequence,
            self.gate.last_sequence,
            self.gate.needs_decision,
            latch.engaged,
            tuple(sorted({STOPS.index(request) for request in latch._seen})),
            tuple(sorted({STOPS.index(request) for request in latch._released})),
            lost,
            ghost["cause_gone"] or (modes.state is not InjectorState.FAIL_SAFE and not lost),
            ghost["sent_stops"],
            tuple(sorted(ghost["chunks"])),
            None if feedback is None else feedback.heard,
            synthesizer._sequence,
            0 if motion.reference is None or stack.awaiting else synthesizer._decision_sequence,
            stack.status if stack.active else TaskStatus.IDLE,
            stack.decision_id,
            stack.awaiting,
            int(stack.decision_reason) if stack.awaiting else 0,
            bool(stack.interruptions),
            -1 if motion.reference is None else motion._epoch,
            synthesizer.tasks.execution is not None,
            ghost["due"],
        )

    # --- injector's actions ---------------------------------------------------------------------

    def tick(self, stops: tuple[StopRequest, ...] = ()) -> None:
        """What a tick does without a chunk."""
        before = self.modes.epoch
        self.modes.supervise(NOW, 0, stops)
        if self.modes.epoch != before:
            self.ghost["due"] = True
            self.ghost["cause_gone"] = False

    def engage(self) -> None:
        """A stop that was not sent before."""
        request = STOPS[self.ghost["sent_stops"]]
        self.ghost["sent_stops"] += 1
        self.tick((request,))

    def deliver(self, sent: Sent) -> None:
        """A chunk comes in, and is gone from the network."""
        self._take_out(sent)
        self.deliver_doubled(sent)

    def deliver_late(self, sent: Sent) -> None:
        """A chunk comes in more than 15 ms after its trigger."""
        self._take_out(sent)
        _require(not self._consider(sent, late=True), "what is late is never followed")

    def deliver_doubled(self, sent: Sent) -> None:
        """A chunk comes in and will again; everything is judged that must be true of it."""
        due, last = self.state.due, self.gate.last_sequence
        if not self._consider(sent, late=False):
            return
        _require(not self.modes.stop.engaged, "nothing is followed while a stop is engaged")
        _require(self.state.mode in MOVING_STATES, "chunks are followed in HOLD, FOLLOW and RAMP")
        _require(sent.made_in == self.modes.epoch, "nothing from before a stop or fail-safe moves")
        _require(not sent.stopped, "nothing that was made while stopped moves")
        _require(sent.sequence > last, "an older chunk never follows a newer one")
        _require(not due or sent.kind is ChunkKind.DECISION, "a stop is left by a decision only")
        self.ghost["due"] = False

    def _consider(self, sent: Sent, *, late: bool) -> bool:
        counters = self.controller.counters
        adopted = self.controller.take(sent.chunk(late=late))
        dropped = counters.chunks_late + counters.chunks_refused
        _require(
            (counters.chunks_adopted, dropped) == (adopted, not adopted),
            "each chunk is followed and counted, or dropped and counted",
        )
        return adopted

    def _take_out(self, sent: Sent) -> None:
        left = list(self.ghost["chunks"])
        left.remove(sent)
        self.ghost["chunks"] = tuple(left)

    def release(self) -> None:
        """The service ``~/release_stop``."""
        self.modes.ask_release()
        self.tick()

    def come_to_rest(self) -> None:
        """The ramp, or a chunk that ends at rest, is over."""
        self.arm.rest()
        self.modes.after_motion(NOW, inside_limits=True)

    def starve(self) -> None:
        """No chunk came for 60 ms."""
        self.modes._adopted_ns = LONG_AGO
        self.modes.after_motion(NOW, inside_limits=True)

    def restart_injector(self) -> None:
        """The process starts again; latched stops are heard before anything else."""
        self.arm.rest()  # the drives have braked meanwhile
        latch = self.modes.stop
        latch.release()
        latch._released.clear()
        self.modes.activate(NOW)
        self.supervisor.lost = False
        self.ghost.update(chunks=(), due=False)
        self.tick(tuple(STOPS[: self.ghost["sent_stops"]]))

    # --- synthesizer's actions --------------------------------------------------------------------

    def hear(self) -> None:
        """Feedback arrives; until the next one it is all that is known."""
        self.synthesizer.tracking.feedback = _feedback(self._told(self.state))
        self.synthesizer.tasks.watch(NOW)

    def start(self) -> None:
        """``execute_task``."""
        self.synthesizer.tasks.start(TASK, "goal", NOW)

    def interrupt(self) -> None:
        """``~/interrupt``."""
        self.synthesizer.tasks.interrupt("monitor", "near", NOW)

    def resume(self) -> None:
        """``~/resume``."""
        self.synthesizer.tasks.resume("", NOW)

    def cancel(self) -> None:
        """The goal is canceled."""
        self.synthesizer.tasks.cancel("canceled", NOW)

    def decide(self) -> None:
        """A match answers the decision that is asked for."""
        match = _match(self.synthesizer.tasks.stack.decision_id)
        self._send(self.synthesizer.on_match(match, NOW))

    def give_up(self) -> None:
        """The newest decision went out long ago."""
        self.synthesizer._decision_ns = LONG_AGO
        self.go_on()

    def go_on(self) -> None:
        """A continuation is due."""
        self.synthesizer._match_ns = NOW
        self._send(self.synthesizer.on_tick(NOW))

    def restart_synthesizer(self) -> None:
        """The process starts again: it knows nothing, and ids go on rising."""
        synthesizer = self.synthesizer
        synthesizer.tracking.feedback = None
        synthesizer.motion.reference = None
        synthesizer._sequence = synthesizer._decision_sequence = 0
        synthesizer.tasks.execution = None
        stack = synthesizer.tasks.stack
        stack.status, stack.awaiting = TaskStatus.IDLE, False
        stack.decision_id += 1  # where ids begin is told by the clock: higher than before
        stack.frames, stack.interruptions = [], []
        self.ghost["chunks"] = ()

    def _send(self, chunk: TrajectoryChunk | None) -> None:
        if chunk is None:
            return
        decision = chunk.decision
        sent = Sent(
            decision.epoch,
            decision.sequence,
            chunk.kind,
            self.modes.epoch,
            self.modes.stop.engaged,
        )
        self.ghost["chunks"] = (*self.ghost["chunks"], sent)

    # --- all --------------------------------------------------------------------------------

    def actions(self, state: State) -> Iterator[Action]:
        """Return what may happen in a state."""
        yield from self._network_actions(state)
        yield from self._injector_actions(state)
        yield from self._synthesizer_actions(state)

    def _network_actions(self, state: State) -> Iterator[Action]:
        for sent in dict.fromkeys(state.chunks):
            yield Action("arrives:", self.deliver, sent)
            yield Action("arrives, and will again:", self.deliver_doubled, sent)
            yield Action("arrives too late:", self.deliver_late, sent)
        if state.heard != self._told(state):
            yield Action("feedback is heard", self.hear)

    def _injector_actions(self, state: State) -> Iterator[Action]:
        if state.mode in (InjectorState.FAIL_SAFE, InjectorState.INACTIVE):
            yield Action("a tick", self.tick)
        if state.moving:
            yield Action("the arm comes to rest", self.come_to_rest)
        if state.mode is InjectorState.FOLLOW:
            yield Action("chunks run out", self.starve)
        if not state.cause_gone and not state.lost:
            yield Action("100 ms pass", self._let_cause_go)
        if state.epoch < self.bounds.epochs:
            if state.sent_stops < len(STOPS):
                yield Action("somebody engages a stop", self.engage)
            if not state.lost:
                yield Action("a source is lost", self._lose)
            yield Action("injector starts again", self.restart_injector)
        for i in range(state.sent_stops):  # it may engage: only where a new epoch is in bounds
            if i in state.released or state.engaged:
                yield Action("a stop is delivered again", self.tick, (STOPS[i],))
        if state.lost:
            yield Action("the source is back", self._find)
        if state.engaged:
            yield Action("somebody says: not engaged", self.tick, (NOT_ENGAGED,))
            yield Action("the stop is released", self.release)

    def _synthesizer_actions(self, state: State) -> Iterator[Action]:
        room = len(state.chunks) < self.bounds.in_flight and (
            state.numbered < self.bounds.sequences
        )
        if room and state.awaiting:
            yield Action("a match decides", self.decide)
        if room:
            yield Action("a continuation is due", self.go_on)
        if room and state.decision < self.bounds.decisions:
            yield Action("a decision was not taken", self.give_up)
        if state.decision < self.bounds.decisions:
            if state.status not in ACTIVE:
                yield Action("a task is started", self.start)
            if state.status == TaskStatus.INTERRUPTED:
                yield Action("it is resumed", self.resume)
            yield Action("synthesizer starts again", self.restart_synthesizer)
        if state.status == TaskStatus.RUNNING:
            yield Action("it is interrupted", self.interrupt)
            yield Action("it is canceled", self.cancel)

    @staticmethod
    def _told(state: State) -> Heard:
        return Heard(state.mode, state.epoch, state.followed)

    def _let_cause_go(self) -> None:
        self.ghost["cause_gone"] = True

    def _lose(self) -> None:
        self.supervisor.lost = True
        self.tick()

    def _find(self) -> None:
        self.supervisor.lost = False
        self.ghost["cause_gone"] = False

    def check(self) -> None:
        """Judge what must be true in every state."""
        modes, arm = self.modes, self.arm
        if modes.stop.engaged:
            _require(modes.state not in MOVING_STATES, "a stop that is engaged is in force")
            _require(arm.path is not Path.CHUNK, "no chunk is played while a stop is engaged")
        if arm.path is Path.CHUNK:
            _require(modes.state is InjectorState.FOLLOW, "chunks are played in FOLLOW only")
            _require(modes.chunk is not None, "what is played belongs to the epoch in force")


def explore(
    bounds: Bounds, gate: type[Gate] = Gate, most: int = 200_000
) -> dict[State, list[State]]:
    """Return every state that can be reached inside bounds, and where each leads; breadth first.

    Raises:
        ViolationError: an invariant is broken; the message tells the shortest way to it.
    """
    world = World(bounds, gate)
    first = world.first()
    came_from: dict[State, tuple[State, str] | None] = {first: None}
    leads_to: dict[State, list[State]] = {}
    waiting = deque([first])
    while waiting:
        state = waiting.popleft()
        leads_to[state] = followers = []
        for action in list(world.actions(state)):
            world.load(state)
            try:
                action.act(*action.arguments)
                world.check()
                clears = action.act in (world.release, world.restart_injector)
                kept = not state.engaged or world.modes.stop.engaged
                _require(kept or clears, "nothing but its release clears a stop")
            except TaskTransitionError:
                continue
            except AssertionError as error:
                raise ViolationError(f"{error}: {_way(came_from, state)}, {action}") from error
            after = world.save()
            followers.append(after)
            if after not in came_from:
                if len(came_from) >= most:
                    raise MemoryError(f"more than {most} states")
                came_from[after] = (state, str(action))
                waiting.append(after)
    return leads_to


def _way(came_from: dict[State, tuple[State, str] | None], state: State) -> str:
    names = []
    step = came_from[state]
    while step is not None:
        state, name = step
        names.append(name)
        step = came_from[state]
    return ", ".join(reversed(names))


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ViolationError(what)


@cache
def _chunk(sent: Sent, late: bool) -> TrajectoryChunk:
    header = Decision(
        trigger_monotonic_ns=NOW - OLD if late else NOW,
        sequence=sent.sequence,
        epoch=sent.epoch,
    )
    return ChunksDouble().make(None, NOW, header, sent.kind)


@cache
def _in_force(sequence: int) -> TrajectoryChunk:
    return ChunksDouble().make(None, NOW, Decision(sequence=sequence), ChunkKind.CONTINUATION)


@cache
def _feedback(heard: Heard) -> Any:
    return SimpleNamespace(
        heard=heard,
        state=heard.state,
        epoch=heard.epoch,
        chunk_sequence=heard.sequence,
        monotonic_ns=NOW,
        reason="",
    )


@cache
def _match(decision_id: int) -> CacheMatch:
    header = Decision(trigger_monotonic_ns=NOW, decision_id=decision_id)
    return SimpleNamespace(  # type: ignore[return-value]
        decision=header, hit=False, target=None, trigger=Trigger.IMAGE, behavior=None, reason=""
    )


EXECUTION: Any = SimpleNamespace(
    match=_match(0),
    stage=TASK.stages[0],
    entry=(0, 0),
    outputs=(),
    outputs_ns=0,
    reused=False,
    target=None,
    decision_hit=False,
    interrupt=lambda now_ns: None,
    go_on=lambda match, now_ns: None,
)


def _synthesizer(arm: Arm) -> BehaviorSynthesizer:
    config = SynthesisConfig()
    made = BehaviorSynthesizer.__new__(BehaviorSynthesizer)
    made._config = config
    made.tracking = Tracking((), config)
    made.tracking.joints = SimpleNamespace(receipt_ns=NOW, velocity=())  # type: ignore[assignment]
    made.tracking.at_rest = lambda now_ns: not arm.moving  # type: ignore[method-assign]
    made._decider = DeciderDouble()  # type: ignore[assignment]
    made.motion = Motion(made.tracking, arm)
    model: Any = SimpleNamespace(joint_names=())
    made.tasks = TaskRunner(model, config, made.tracking, made.motion, 1)
    made._chunks = ChunksDouble()  # type: ignore[assignment]
    made._clock = lambda: NOW
    made._header = Decision()
    made.obstacles = None  # type: ignore[assignment]
    made.decisions_dropped = made.refreshes_dropped = 0
    made._match_ns = NOW
    made._sent_ns = made._sequence = made._decision_sequence = made._attempts = 0
    made._decision_ns = NOW
    made._asked = (0, 0)
    made._decision_id = 0
    made._patience = Patience(0.0)
    return made
