"""Eight threads insert, match and invalidate at once: nothing is lost, nothing is torn."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kv_action_router.caching.invalidation import Invalidation, Scope
from kv_action_router.caching.warmup import warm_up
from kv_action_router.contracts import UpdateOperation

ROUNDS = 40


@pytest.fixture
def hasty():
    """Threads are switched as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty")
def test_eight_threads_and_a_data_plane(build) -> None:
    """Seven control threads, each with entries of its own, beside the one that answers keys."""
    manager = build.manager(capacity=200)
    stop = threading.Event()

    def control(number: int) -> int:
        vector = build.vector(100 + number, 200 + number, 300 + number)
        mark = float(number) / 10
        for _ in range(ROUNDS):
            behavior = build.behavior(mark=mark)
            done = manager.apply(build.update(vector=vector, behavior=behavior))
            answer = manager.query(vector, intent_id="touch")
            assert answer.hit
            assert answer.entry_id == done.entry_id
            assert (answer.behavior.coefficients[1:] == mark).all()
            manager.apply(
                build.update(UpdateOperation.SUCCESS, entry=done.entry_id, version=done.version)
            )
            assert manager.invalidate(Invalidation(Scope.ENTRY, "test", done.entry_id)) == 1
            assert not manager.query(vector, intent_id="touch").hit
        manager.apply(build.update(vector=vector, behavior=build.behavior(mark=mark)))
        return number

    def data() -> int:
        decision = hits = 0
        while not stop.is_set():
            decision += 1
            number = decision % 7
            key = build.key(build.vector(100 + number, 200 + number, 300 + number))
            match = build.decide(manager, decision, key)
            assert match.is_decision
            if match.hit:
                hits += 1
                assert (match.behavior.coefficients[1:] == number / 10).all()
                assert match.behavior.target.position[1] == number / 10
        return hits

    with ThreadPoolExecutor(8) as pool:
        answering = pool.submit(data)
        try:
            controls = [pool.submit(control, number) for number in range(7)]
            assert sorted(task.result(60) for task in controls) == list(range(7))
        finally:
            stop.set()
        assert answering.result(60) >= 0
    assert len(manager.entries) == 7
    assert manager.entries.tasks.pool.used == manager.entries.behaviors.pool.used == 7
    assert manager.counted.of_task("r1").insertions == 7 * (ROUNDS + 1)


def test_a_key_is_answered_while_the_control_plane_is_busy(build) -> None:
    """No lock is shared: a control call that never ends does not stand before a key."""
    manager = build.manager()
    manager.apply(build.update())
    with manager._control, ThreadPoolExecutor(1) as pool:
        assert pool.submit(build.decide, manager).result(10).hit


def test_warm_up_runs_decisions_of_every_kind(build) -> None:
    hit, refresh, idle = warm_up(build.manager().config, build.arm)
    assert (hit.hit, hit.is_decision) == (True, True)
    assert (refresh.hit, refresh.is_decision) == (True, False)
    assert not idle.hit
