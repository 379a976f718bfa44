"""Stages and their times, from what a task says of itself."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.contracts import TaskStatus
from kv_action_router.reporting.records import StageSpan
from kv_action_router.reporting.timeline import StageTimeline


def told(*states: tuple[int, str, str, int, int]) -> list[StageSpan]:
    timeline = StageTimeline()
    for status, task, stage, index, now_ns in states:
        timeline.on_state(status, task, "goal", stage, index, now_ns)
    return timeline.spans


RUN, DONE, FAILED = TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED


def test_a_stage_ends_where_the_next_begins_and_the_last_one_with_its_task() -> None:
    spans = told(
        (RUN, "t", "approach", 0, 10),
        (RUN, "t", "approach", 0, 20),  # told again, as a task under way is
        (RUN, "t", "touch", 1, 30),
        (DONE, "t", "touch", 1, 50),
        (DONE, "t", "touch", 1, 90),
    )
    assert spans == [
        StageSpan("approach", 10, 30, True, "t"),
        StageSpan("touch", 30, 50, True, "t"),
    ]


def test_the_stage_of_a_task_that_failed_was_not_completed() -> None:
    spans = told(
        (RUN, "t", "approach", 0, 10), (RUN, "t", "touch", 1, 30), (FAILED, "t", "", 1, 40)
    )
    assert [span.completed for span in spans] == [True, False]


def test_an_inserted_sequence_breaks_a_stage_off() -> None:
    spans = told(
        (RUN, "t", "approach", 0, 0),
        (RUN, "back_off", "up", 0, 5),
        (RUN, "t", "approach", 0, 9),
        (DONE, "t", "approach", 0, 12),
    )
    assert [(span.stage, span.completed) for span in spans] == [
        ("approach", False),
        ("up", False),
        ("approach", True),
    ]


def test_what_was_forgotten_does_not_come_back_and_nothing_under_way_is_seen() -> None:
    timeline = StageTimeline()
    timeline.on_state(RUN, "t", "g", "approach", 0, 1)
    assert timeline.under_way
    timeline.on_state(DONE, "t", "g", "approach", 0, 2)
    assert not timeline.under_way
    timeline.clear()
    assert timeline.spans == []


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(TaskStatus)),
            st.sampled_from("ab"),
            st.integers(0, 3),
            st.integers(0, 9),
        )
    )
)
def test_spans_never_overlap(states) -> None:
    at, told_states = 0, []
    for status, task, index, later in states:
        at += later
        told_states.append((status, task, str(index), index, at))
    spans = told(*told_states)
    assert all(span.begin_ns <= span.end_ns for span in spans)
    assert all(a.end_ns <= b.begin_ns for a, b in pairwise(spans))
