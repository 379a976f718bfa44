"""What counts as a decision of a phase: once, after the warm-up, as what its chunk was made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.counting import PhaseCount
from harness.phases import (
    PERIOD_NS,
    SETTLED,
    STAGES,
    Phase,
    PhaseRecord,
    period_of,
    read_plan,
    read_record,
    write_plan,
    write_record,
    write_task,
)
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.tasks.definition import load_task

TIMES = (1, 2, 3, 4, 5)
ENTRY = 7


def adopt(count: PhaseCount, decision: int, entry: int = ENTRY) -> bool:
    """Let a decision's own chunk come, and be followed."""
    count.on_chunk(1000 + decision, entry)
    return count.on_adopted(decision, 1000 + decision, TIMES)


def warmed(phase: Phase) -> tuple[PhaseCount, int]:
    """Return a count whose warm-up is over, and its next decision."""
    count = PhaseCount(phase)
    count.begin_task()
    first = max(SETTLED, phase.warm_up) + 2
    for decision in range(1, first):
        assert adopt(count, decision)
    assert not count.rows
    return count, first


def test_only_decisions_of_the_wanted_kind_count_until_there_are_enough() -> None:
    count, decision = warmed(Phase("hit", "hit", 2))
    adopt(count, decision, entry=0)
    adopt(count, decision + 1)
    assert not count.done
    adopt(count, decision + 2)
    assert count.done
    assert count.rows == [TIMES, TIMES]
    assert not adopt(count, decision + 3)
    assert count.record().decisions == {"miss": 1, "hit": 2}


def test_a_continuation_counts_as_a_decision_only_where_its_own_chunk_was_dropped() -> None:
    count, decision = warmed(Phase("hit", "hit", 5))
    adopt(count, decision)
    assert not count.on_adopted(decision, 1, TIMES)
    count.on_chunk(2, ENTRY)
    count.on_late(2)
    assert count.on_adopted(decision + 1, 3, TIMES)
    assert count.in_force == decision + 1
    record = count.record()
    assert record.decisions == {"hit": 1}
    assert record.decisions_late == 1


def test_after_an_invalidation_only_what_answers_it_counts() -> None:
    count, decision = warmed(Phase("invalidated", "miss", 5, invalidates=True))
    adopt(count, decision, entry=0)
    assert not count.rows
    adopt(count, decision + 1)
    assert count.entry_to_invalidate() == ENTRY
    count.invalidated_ns = 1
    assert count.entry_to_invalidate() == 0
    adopt(count, decision + 2, entry=0)
    assert len(count.rows) == len(count.record().reactions_ms) == 1


def test_counters_count_from_the_end_of_the_warm_up_on() -> None:
    count = PhaseCount(Phase("hit", "hit", 1))
    count.counters = {"chunks_late": 10}
    for decision in range(1, SETTLED + 3):
        adopt(count, decision)
    count.counters = {"chunks_late": 13}
    assert count.record().counters == {"chunks_late": 3}


def test_dropped_decisions_are_told_from_other_failures_and_numbers_do_not_tell_them_apart() -> (
    None
):
    count, _ = warmed(Phase("hit", "hit", 5))
    for age in (16.5, 17.0):
        count.on_failure("synthesizer", f"decision dropped: trigger is {age} ms old")
    count.on_failure("injector", "no chunk for 50 ms")
    record = count.record()
    assert record.decisions_dropped == 2
    assert sorted(record.failures.values()) == [1, 2]


def test_a_stop_makes_the_next_decisions_warm_up_and_refused_tasks_end_the_phase() -> None:
    count, decision = warmed(Phase("hit", "hit", 5))
    count.on_stop("monitor: no sign of life")
    adopt(count, decision)
    assert not count.rows
    assert count.record().stops == ["monitor: no sign of life"]
    early = PhaseCount(Phase("hit", "hit", 5))
    early.on_stop("monitor: no sign of life")
    assert early.record().stops == []
    assert early.record().stops_in_warm_up == 1
    for _ in range(30):
        count.on_task_failed("refused")
    assert not count.trouble
    count.on_task_failed("refused")
    assert "refused" in count.trouble


def test_plans_and_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    plan = [Phase("miss", "miss", 3, new_subtasks=True, busy_cores=1), Phase("hit", "hit", 1)]
    write_plan(tmp_path / "new" / "plan.json", plan)
    assert read_plan(tmp_path / "new" / "plan.json") == plan
    record = PhaseRecord("miss", 1, 2, decisions={"miss": 3}, reactions_ms=[1.5], trouble="none")
    write_record(tmp_path / "miss.json", record)
    assert read_record(tmp_path / "miss.json") == record
    assert read_record(tmp_path / "hit.json") is None


@pytest.mark.parametrize("new_subtasks", [False, True])
def test_the_driven_task_is_one_that_the_system_reads(tmp_path: Path, new_subtasks: bool) -> None:
    path = tmp_path / "task.yaml"
    write_task(path, Phase("hit", "hit", 1, new_subtasks=new_subtasks), 3)
    task = load_task(str(path))
    assert task.name == str(path)
    assert len(task.stages) == STAGES
    subtasks = {stage.subtask for stage in task.stages}
    assert len(subtasks) == (STAGES if new_subtasks else 2)
    write_task(path, Phase("miss", "miss", 1, new_subtasks=new_subtasks), 4)
    again = {stage.subtask for stage in load_task(str(path)).stages}
    assert bool(again & subtasks) is not new_subtasks
    assert all(stage.condition("asked") is not None for stage in task.stages)
    assert all(stage.needs_image and not stage.follow_target for stage in task.stages)


def test_images_meet_the_ticks_of_the_injector_at_many_phases() -> None:
    tick = InjectionConfig().period_ns
    assert period_of(100.0) == PERIOD_NS
    for rate in (30.0, 50.0, 100.0):
        phases = {number * period_of(rate) % tick for number in range(1000)}
        assert len(phases) >= 100
