"""The feedback message tells the state that the controller is in, and the decision in question."""

from __future__ import annotations

import math
from typing import Any

from injection_builders import PERIOD_NS, Bench, chunk, holding

from kv_action_router.contracts import Decision, InjectorEvent, InjectorState, Stage
from kv_action_router.injection.events import Event
from kv_action_router.injection.feedback import FIELDS, FeedbackTeller
from kv_action_router.injection.lateness import LatenessMeter


class Told:
    """What was told, by the message's field names."""

    def __init__(self, told: tuple[Decision, tuple[Any, ...]]) -> None:
        self.decision, values = told
        self.__dict__.update(zip(FIELDS, values, strict=True))


class Subject:
    def __init__(self, bench: Bench) -> None:
        self._teller = FeedbackTeller(bench.controller, "arm")

    def periodic(self, now_ns: int, meter: LatenessMeter) -> Any:
        return Told(self._teller.periodic(now_ns, meter))

    def event(self, event: Event, meter: LatenessMeter) -> Any:
        return Told(self._teller.event(event, meter))


def test_periodic_feedback_tells_measured_state_and_counters() -> None:
    bench = Bench((0.2, -0.3))
    subject, meter = Subject(bench), LatenessMeter(0)
    bench.run(20)
    message = subject.periodic(bench.now, meter)
    assert message.joint == ("a", "b")
    assert (message.state, message.event) == (InjectorState.HOLD, InjectorEvent.NONE)
    assert list(message.position) == [0.2, -0.3]
    assert list(message.setpoint_position) == [0.2, -0.3]
    assert list(message.command) == bench.command.values
    assert (message.epoch, message.chunk_sequence) == (1, 0)
    assert math.isnan(message.phase)
    assert message.ticks == message.confident_ticks == message.commands_sent == 10
    assert message.decision.robot_id == "arm"
    assert message.execution_version == 1
    assert 0 < message.joint_monotonic_ns <= bench.now
    assert list(message.confident) == [True, True]


def test_adoption_carries_the_decision_and_the_time_of_its_first_command() -> None:
    bench = Bench()
    subject, meter = Subject(bench), LatenessMeter(0)
    bench.tick()
    bench.tick(chunk(holding([0.0, 0.0]), bench.now + PERIOD_NS, sequence=7))
    message = subject.event(bench.events[-1], meter)
    assert message.event == InjectorEvent.CHUNK_ADOPTED
    assert message.decision.sequence == 7
    assert message.decision.stage_ns[Stage.COMMAND] == bench.now
    assert message.chunk_sequence == 7
    assert message.phase == 0.5
    # a chunk that is refused does not take the place of the one in force
    bench.tick(chunk(holding([0.0, 0.0]), bench.now + PERIOD_NS, sequence=5))
    message = subject.event(bench.events[-1], meter)
    assert (message.event, message.decision.sequence) == (InjectorEvent.CHUNK_ORDER, 5)
    assert "sequence must be above 7" in message.reason
    message = subject.periodic(bench.now, meter)
    assert (message.decision.sequence, message.reason) == (7, "")


def test_a_new_epoch_has_no_chunk_in_force() -> None:
    bench = Bench()
    subject, meter = Subject(bench), LatenessMeter(0)
    bench.tick()
    bench.tick(chunk(holding([0.0, 0.0]), bench.now + PERIOD_NS, sequence=7))
    subject.event(bench.events[-1], meter)
    bench.lost.add("manager")
    bench.run(100)
    message = subject.periodic(bench.now, meter)
    assert (message.state, message.epoch) == (InjectorState.FAIL_SAFE, 2)
    assert (message.chunk_sequence, message.decision.sequence) == (0, 0)
