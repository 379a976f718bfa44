"""No interleaving of our nodes moves the arm after a stop, or follows an older command."""

from __future__ import annotations

import authority_model
import pytest
from authority_model import Bounds, State, ViolationError, explore
from doubles import Gate

from kv_action_router.contracts import InjectorState, TrajectoryChunk
from kv_action_router.injection.stop_latch import StopLatch, StopRequest

STOPPING = Bounds(epochs=3, decisions=1, sequences=2, in_flight=2)
OVERTAKING = Bounds(epochs=1, decisions=2, sequences=3, in_flight=2)
TASKS = Bounds(epochs=2, decisions=3, sequences=2, in_flight=1)


@pytest.mark.parametrize("bounds", [STOPPING, OVERTAKING, TASKS], ids=str)
def test_every_reachable_state_keeps_the_invariants(bounds: Bounds) -> None:
    graph = explore(bounds)
    edges = sum(len(followers) for followers in graph.values())
    print(f"{bounds}: {len(graph)} states, {edges} transitions")
    assert len(graph) > 500
    modes = {state.mode for state in graph}
    assert InjectorState.FOLLOW in modes
    if bounds.epochs > 1:
        assert {InjectorState.STOPPED, InjectorState.FAIL_SAFE} <= modes
        assert any(state.engaged and state.moving for state in graph)  # it brakes: that is judged


def test_whoever_is_stopped_can_move_again() -> None:
    """A stop or fail-safe is no dead end while epochs, decisions and numbers are left."""
    graph = explore(Bounds(epochs=2, decisions=1, sequences=2, in_flight=1))
    before: dict[State, list[State]] = {}
    for state, followers in graph.items():
        for after in followers:
            before.setdefault(after, []).append(state)
    moves = [state for state in graph if state.mode is InjectorState.FOLLOW and state.epoch == 2]
    reached, waiting = set(moves), moves
    while waiting:
        for state in before.get(waiting.pop(), ()):
            if state not in reached:
                reached.add(state)
                waiting.append(state)
    stuck = [
        state
        for state in graph
        if state not in reached
        and state.mode in (InjectorState.STOPPED, InjectorState.FAIL_SAFE)
        and state.status in authority_model.ACTIVE
        and state.awaiting
        and state.numbered < 2
    ]
    assert not stuck


class WithoutEpoch(Gate):
    """Takes chunks of any epoch."""

    def check(self, chunk: TrajectoryChunk, now_ns: int, epoch: int) -> None:
        super().check(chunk, now_ns, chunk.decision.epoch)


class WithoutOrder(Gate):
    """Takes chunks in any order."""

    def check(self, chunk: TrajectoryChunk, now_ns: int, epoch: int) -> None:
        kept, self.last_sequence = self.last_sequence, -1
        try:
            super().check(chunk, now_ns, epoch)
        finally:
            self.last_sequence = kept


class WithoutDeadline(Gate):
    """Takes chunks of any age."""

    def check(self, chunk: TrajectoryChunk, now_ns: int, epoch: int) -> None:
        super().check(chunk, chunk.decision.trigger_monotonic_ns, epoch)


@pytest.mark.parametrize(
    ("gate", "bounds", "broken"),
    [
        (WithoutEpoch, STOPPING, "stop"),
        (WithoutOrder, OVERTAKING, "older chunk never follows"),
        (WithoutDeadline, OVERTAKING, "late is never followed"),
    ],
)
def test_each_check_that_is_taken_out_is_missed(
    gate: type[Gate], bounds: Bounds, broken: str
) -> None:
    with pytest.raises(ViolationError, match=broken):
        explore(bounds, gate)


def test_latch_that_the_topic_clears_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def receive(self: StopLatch, request: StopRequest) -> bool:
        newly, self.engaged = request.engaged and not self.engaged, request.engaged
        return newly

    monkeypatch.setattr(StopLatch, "receive", receive)
    with pytest.raises(ViolationError, match="nothing but its release clears a stop"):
        explore(STOPPING)
