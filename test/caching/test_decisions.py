"""Decisions and refreshes: which key answers, what later keys carry, what is counted."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from kv_action_router.caching.decisions import describe
from kv_action_router.caching.invalidation import Invalidation, Scope
from kv_action_router.contracts import Decision, MissReason, TaskStatus, Trigger, UpdateOperation


def counters(manager, layer: str = "task", domain: str = "r1"):
    return next(
        report.counters
        for report in manager.statistics().layers
        if (report.layer, report.domain) == (layer, domain)
    )


def test_every_key_is_answered_also_without_a_task(build) -> None:
    manager = build.manager()
    match = manager.on_key(build.key())
    assert (match.hit, match.is_decision, match.miss_reason) == (False, False, MissReason.NO_TASK)
    assert match.decision.decision_id == 0
    for status in (TaskStatus.IDLE, TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.CANCELED):
        manager.on_task_state(build.task(status=status))
        assert manager.on_key(build.key()).miss_reason == MissReason.NO_TASK
    assert counters(manager).decisions == 0


def test_the_first_key_decides_and_the_rest_refresh(build) -> None:
    manager = build.manager()
    manager.apply(build.update(behavior=build.behavior(mark=0.5)))
    first = build.decide(manager)
    assert first.hit
    assert first.is_decision
    assert first.behavior is not None
    assert first.behavior.coefficients[1, 0] == 0.5
    for number in range(3):
        later = manager.on_key(build.key(trigger=Trigger.JOINT_STATE))
        assert later.hit
        assert not later.is_decision
        assert later.decision.decision_id == 1
        assert later.decision.sequence == first.decision.sequence + number + 1
        assert later.entry_id == first.entry_id
        assert later.behavior is first.behavior
    assert (counters(manager).decisions, counters(manager).hits) == (1, 1)
    assert counters(manager).refreshes == 3


def test_the_header_travels_with_the_match(build) -> None:
    manager = build.manager()
    match = build.decide(
        manager, 5, build.key(trace_id=99, epoch=8, scene="warehouse", stamp_ns=4), intent="other"
    )
    assert match.decision.trace_id == 99
    assert match.decision.epoch == 8
    assert match.decision.decision_id == 5
    assert match.decision.intent_id == "other"
    assert match.decision.scene == "warehouse"
    assert match.threshold == 0.72
    assert match.decision.trigger_monotonic_ns == 2000
    assert match.decision.stamp_ns == 4
    assert match.decision.source_domain == match.decision.domain == "r1"


def test_the_header_loses_nothing_on_the_way(build) -> None:
    """It is written out field by field: a new field must be carried, too."""
    key = build.key()
    values = {field.name: f"some {field.name}" for field in dataclasses.fields(Decision)}
    header = dataclasses.replace(Decision(**values), domain="r1", stage_ns=(1, 2, 3, 4, 5))
    match = build.manager().on_key(dataclasses.replace(key, decision=header))
    assert match.decision == dataclasses.replace(
        header, sequence=1, decision_id=0, source_domain="r1", intent_id=""
    )


def test_a_miss_stays_a_miss_until_the_next_decision(build) -> None:
    manager = build.manager()
    assert not build.decide(manager, 1).hit
    manager.apply(build.update())
    refresh = manager.on_key(build.key())
    assert not refresh.hit
    assert refresh.decision.decision_id == 1
    assert build.decide(manager, 2).hit
    assert counters(manager).misses_empty == 1


def test_a_refresh_shows_the_present_similarity(build) -> None:
    manager = build.manager()
    manager.apply(build.update())
    build.decide(manager)
    moved = manager.on_key(build.key(build.turned(build.vector(), "target", 0.5)))
    assert moved.hit  # the decision stands; what moved is corrected locally
    assert moved.similarity == pytest.approx(0.75, abs=1e-5)
    assert moved.target_similarity == pytest.approx(0.5, abs=1e-5)
    assert moved.worst_slice == "target"


class TestWaiting:
    """A decision that needs an image is answered by a newer image that shows the target."""

    @pytest.mark.parametrize(
        ("key", "why"),
        [
            ({"trigger": Trigger.JOINT_STATE}, "from an image"),
            ({"trigger_monotonic_ns": 999}, "newer than its request"),
            ({"trigger_monotonic_ns": 1000}, "newer than its request"),
            ({"sees_target": False}, "target to be seen"),
        ],
    )
    def test_first_decision(self, build, key, why: str) -> None:
        manager = build.manager()
        manager.apply(build.update())
        waiting = build.decide(manager, key=build.key(**key))
        assert (waiting.hit, waiting.is_decision) == (False, False)
        assert waiting.decision.decision_id == 0
        assert why in waiting.reason
        decided = manager.on_key(build.key())
        assert decided.is_decision
        assert decided.hit

    def test_the_answered_decision_is_refreshed_meanwhile(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update())
        build.decide(manager, 1)
        waiting = build.decide(manager, 2, build.key(trigger=Trigger.JOINT_STATE))
        assert waiting.hit
        assert not waiting.is_decision
        assert waiting.decision.decision_id == 1

    def test_a_stage_without_image_decides_on_any_key(self, build) -> None:
        manager = build.manager()
        match = build.decide(
            manager,
            key=build.key(trigger=Trigger.JOINT_STATE, sees_target=False),
            needs_image=False,
            needs_target=False,
        )
        assert match.is_decision

    def test_a_decision_that_waits_for_its_target_is_counted_once(self, build) -> None:
        manager = build.manager()
        for _ in range(5):
            build.decide(manager, key=build.key(sees_target=False))
        assert counters(manager).misses_no_target == 1
        build.decide(manager, 2, build.key(sees_target=False))
        assert counters(manager).misses_no_target == 2


def test_another_goal_starts_afresh(build) -> None:
    manager = build.manager()
    manager.apply(build.update())
    build.decide(manager, 1)
    match = build.decide(manager, 1, build.key(trigger=Trigger.JOINT_STATE), goal="g2")
    assert match.decision.decision_id == 0
    assert build.decide(manager, 1, goal="g2").is_decision


def test_an_interrupted_task_is_refreshed(build) -> None:
    manager = build.manager()
    manager.apply(build.update())
    build.decide(manager, 1)
    for status in (TaskStatus.INTERRUPTED, TaskStatus.STOPPING):
        manager.on_task_state(build.task(1, status=status))
        assert manager.on_key(build.key()).hit


def test_a_bad_key_is_refused_before_anything_changes(build) -> None:
    manager = build.manager()
    manager.apply(build.update())
    for bad in (np.zeros(64), np.full(64, np.nan), np.ones(63)):
        match = build.decide(manager, key=build.key(bad))
        assert (match.hit, match.is_decision) == (False, False)
        assert match.miss_reason == MissReason.INVALID_KEY
        assert match.reason.startswith("key must")
        assert np.array_equal(match.vector, np.zeros(64))
    assert manager.on_key(build.key()).is_decision
    report = manager.statistics()
    assert (report.keys, report.keys_refused) == (4, 3)
    assert counters(manager).misses_invalid_key == 3


class TestWithdrawn:
    """The entry in force is thrown away, or its domain is no longer shared."""

    def test_by_request(self, build) -> None:
        manager = build.manager()
        entry = manager.apply(build.update()).entry_id
        build.decide(manager)
        manager.invalidate(Invalidation(Scope.ENTRY, "gripped the wrong part", entry))
        match = manager.on_key(build.key())
        assert (match.hit, match.behavior, match.is_decision) == (False, None, False)
        assert match.decision.decision_id == 1
        assert "gripped the wrong part" in match.reason

    def test_behavior_alone(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update())
        build.decide(manager)
        manager.invalidate(Invalidation(Scope.LAYER, "new tool", layer="behavior"))
        assert not manager.on_key(build.key()).hit

    def test_a_newer_version_does_not_end_the_motion_under_way(self, build) -> None:
        manager = build.manager()
        entry = manager.apply(build.update()).entry_id
        first = build.decide(manager)
        manager.apply(
            build.update(
                UpdateOperation.REVISE, entry=entry, version=1, behavior=build.behavior(mark=0.1)
            )
        )
        match = manager.on_key(build.key())
        assert match.hit
        assert (match.entry_version, match.behavior) == (1, first.behavior)
        assert build.decide(manager, 2).entry_version == 2

    def test_the_entry_in_force_is_not_evicted(self, build) -> None:
        manager = build.manager(capacity=2)
        entry = manager.apply(build.update()).entry_id
        build.decide(manager)
        for seed in range(20, 30):
            manager.apply(build.update(vector=build.vector(seed, seed + 100, seed + 200)))
        assert manager.on_key(build.key()).hit
        assert entry in manager.entries.tasks.slots
        assert len(manager.entries) == 2

    def test_sharing_that_ends(self, build) -> None:
        manager = build.manager()
        manager.apply(build.update(domain="r2"))
        manager.set_isolation("r2", "r1", isolated=False)
        first = build.decide(manager)
        assert first.hit
        assert (first.decision.domain, first.decision.source_domain) == ("r1", "r2")
        manager.set_isolation("r2", "r1", isolated=True)
        match = manager.on_key(build.key())
        assert not match.hit
        assert match.behavior is None
        assert "no longer shared" in match.reason


def test_decisions_are_told_once_with_their_why(build) -> None:
    manager = build.manager()
    build.decide(manager, 1)
    manager.apply(build.update())
    build.decide(manager, 2)
    manager.on_key(build.key())
    told = [describe(match) for match in manager.decisions()]
    assert told[0].startswith("decision 1 touch_approach_v1: miss (empty), no entry in domain 'r1'")
    assert told[1].startswith("decision 2 touch_approach_v1: hit, entry 1: similarity 1.000")
    assert not manager.decisions()


def test_match_times_are_summarized_over_ten_seconds(build) -> None:
    now = [0]
    manager = build.manager()
    manager._clock = lambda: now[0]
    assert math.isnan(manager.statistics().match_time_p50_us)
    for microseconds in range(1, 101):
        manager.record_match_time(0, microseconds * 1000)
    now[0] = 1_000_000
    report = manager.statistics()
    assert report.match_time_p50_us == pytest.approx(50.5)
    assert report.match_time_max_us == 100.0
    assert report.match_time_p99_us == pytest.approx(99.01)
    now[0] = 20_000_000_000
    assert math.isnan(manager.statistics().match_time_p50_us)


def test_preparing_asks_the_guards_and_decides_nothing(build) -> None:
    asked: list[int] = []

    class Counting:
        name = "counting"

        def check(self, candidate, joints, behavior) -> None:
            asked.append(candidate.entry_id)

    manager = build.manager(guards=(Counting(),))
    manager.apply(build.update())
    manager.prepare()  # no task
    manager.on_task_state(build.task(1))
    manager.prepare()  # no key yet
    assert asked == []
    manager.on_task_state(build.task(status=TaskStatus.IDLE))
    manager.on_key(build.key())
    manager.on_task_state(build.task(1))
    before = dataclasses.asdict(counters(manager))
    manager.prepare()
    assert asked == [1]
    assert dataclasses.asdict(counters(manager)) == before
    assert manager.on_key(build.key()).is_decision
    assert asked == [1, 1]
    manager.prepare()  # it is answered
    assert asked == [1, 1]
