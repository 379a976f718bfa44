"""Conditions hold on receipt time, and only on samples that were really received."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.errors import ConditionError
from kv_action_router.tasks.conditions import (
    OPERATORS,
    Condition,
    HeldCondition,
    Predicate,
    condition_to_data,
    parse_condition,
    parse_conditions,
)
from kv_action_router.tasks.signals import SIGNALS

MS = 1_000_000
NAN = math.nan


def force(
    held_ms: float = 20.0, *, limit: float = 5.0, clear: float | None = None
) -> HeldCondition:
    predicate = Predicate("wrench_force", ">", limit, clear)
    return HeldCondition(Condition("contact", (predicate,), held_ms, max_gap_ms=15.0))


def feed(held: HeldCondition, samples: list[tuple[float, float]]) -> list[bool]:
    """Feed (milliseconds, newtons)."""
    return [held.update({"wrench_force": value}, int(ms * MS)) for ms, value in samples]


def test_holds_after_its_time_and_not_before() -> None:
    held = force(20.0)
    assert feed(held, [(t, 6.0) for t in range(0, 24, 4)]) == [False] * 5 + [True]
    assert held.held_ns == 20 * MS
    assert held.value == 6.0


def test_zero_held_time_needs_one_sample() -> None:
    assert feed(force(0.0), [(0, 5.0), (2, 5.1)]) == [False, True]


@pytest.mark.parametrize("hole", [NAN, math.inf, -math.inf, None, 4.9])
def test_a_sample_that_does_not_hold_starts_over(hole: float | None) -> None:
    held = force(20.0)
    feed(held, [(0, 6.0), (10, 6.0)])
    assert not held.update({"wrench_force": hole}, 15 * MS)  # type: ignore[dict-item]
    assert held.held_ns == 0
    assert feed(held, [(20, 6.0), (30, 6.0), (39, 6.0), (40, 6.0)]) == [False, False, False, True]


def test_a_signal_that_is_not_there_does_not_hold() -> None:
    held = force(0.0)
    assert not held.update({}, 0)
    assert not held.update({"joint_speed": 9.0}, 2 * MS)


def test_silence_does_not_hold() -> None:
    held = force(20.0)
    assert feed(held, [(0, 6.0), (200, 6.0), (210, 6.0)]) == [False, False, False]
    assert held.held_ns == 10 * MS


def test_the_same_sample_again_holds_no_longer() -> None:
    held = force(20.0)
    assert feed(held, [(0, 6.0)] * 100) == [False] * 100
    assert held.held_ns == 0


def test_receipt_time_going_back_starts_over() -> None:
    held = force(20.0)
    feed(held, [(100, 6.0), (110, 6.0)])
    assert feed(held, [(90, 6.0), (100, 6.0), (110, 6.0)]) == [False, False, True]


def test_reset_forgets() -> None:
    held = force(10.0)
    feed(held, [(0, 6.0), (10, 6.0)])
    assert held.satisfied
    held.reset()
    assert not held.satisfied
    assert feed(held, [(12, 6.0), (22, 6.0)]) == [False, True]


def test_hysteresis_keeps_it_until_the_clear_limit() -> None:
    held = force(0.0, limit=5.0, clear=4.0)
    samples = [(0, 4.5), (2, 5.5), (4, 4.5), (6, 4.0), (8, 4.5), (10, 5.1)]
    assert feed(held, samples) == [False, True, True, False, False, True]


def test_all_predicates_must_hold_together() -> None:
    held = HeldCondition(
        Condition(
            "done",
            (Predicate("motion_phase", ">=", 1.0), Predicate("joint_speed", "<=", 0.01)),
            20.0,
        )
    )
    assert not held.update({"motion_phase": 1.0, "joint_speed": 0.5}, 0)
    assert not held.update({"motion_phase": 1.0, "joint_speed": 0.0}, 10 * MS)
    assert not held.update({"motion_phase": 1.0}, 20 * MS)
    assert not held.update({"motion_phase": 1.0, "joint_speed": 0.0}, 30 * MS)
    assert held.update({"motion_phase": 1.0, "joint_speed": 0.01}, 50 * MS)


def test_jump_compares_two_consecutive_samples() -> None:
    held = HeldCondition(Condition("slip", (Predicate("joint_speed", "jump", 1.0),)))
    stream = [(0, 0.0), (10, 0.9), (20, 2.0), (20, 2.0), (30, 2.0), (40, NAN), (50, 9.0)]
    answers = [held.update({"joint_speed": v}, t * MS) for t, v in stream]
    assert answers == [False, False, True, False, False, False, False]


def test_jump_across_silence_is_none() -> None:
    held = HeldCondition(Condition("slip", (Predicate("joint_speed", "jump", 1.0),)))
    held.update({"joint_speed": 0.0}, 0)
    assert not held.update({"joint_speed": 9.0}, 2_000 * MS)


def test_the_gap_comes_from_the_slowest_signal() -> None:
    wrench = Condition("a", (Predicate("wrench_force", ">", 1.0),))
    both = Condition(
        "b", (Predicate("wrench_force", ">", 1.0), Predicate("drive_temperature", ">", 1.0))
    )
    assert wrench.gap_ns == SIGNALS["wrench_force"].stale_after_ms * MS
    assert both.gap_ns == SIGNALS["drive_temperature"].stale_after_ms * MS
    assert both.signals == ("wrench_force", "drive_temperature")
    assert (both.signal, both.operator, both.limit) == ("wrench_force", ">", 1.0)


# --- properties --------------------------------------------------------------------------------

values = st.one_of(st.floats(-20.0, 20.0), st.just(NAN))
streams = st.lists(st.tuples(st.integers(-5, 25), values), min_size=1, max_size=60)


@given(streams, st.sampled_from([0.0, 10.0, 20.0]))
def test_held_means_an_unbroken_run_of_true_samples(
    steps: list[tuple[int, float]], held_ms: float
) -> None:
    """Against a plain model that looks at the whole history at each sample."""
    held = force(held_ms, limit=5.0)
    history: list[tuple[int, float]] = []
    now = 1_000
    for step, value in steps:
        now += step
        history.append((now, value))
        begin = None
        for index in range(len(history) - 1, -1, -1):
            time, sample = history[index]
            if not sample > 5.0:
                break
            begin = time
            if index and not 0 <= time - history[index - 1][0] <= 15:
                break
        expected = begin is not None and now - begin >= held_ms
        assert held.update({"wrench_force": value}, now * MS) == expected


@given(streams)
def test_never_satisfied_without_a_true_sample_now(steps: list[tuple[int, float]]) -> None:
    held = force(0.0, limit=5.0, clear=3.0)
    now = 1_000
    for step, value in steps:
        now += step
        if held.update({"wrench_force": value}, now * MS):
            assert value > 3.0


@given(
    st.sampled_from([op for op in OPERATORS if op != "jump"]),
    st.floats(-10.0, 10.0),
    st.floats(0.0, 3.0),
    st.lists(st.floats(-15.0, 15.0), max_size=50),
)
def test_no_chatter_inside_the_hysteresis_band(
    operator: str, limit: float, band: float, samples: list[float]
) -> None:
    """Between two changes of the answer the signal has crossed the whole band."""
    upward = operator.startswith(">")
    clear = limit - band if upward else limit + band
    held = HeldCondition(Condition("c", (Predicate("joint_speed", operator, limit, clear),)))
    low, high = min(limit, clear), max(limit, clear)
    before = False
    for index, value in enumerate(samples):
        answer = held.update({"joint_speed": value}, index * 10 * MS)
        if answer != before:
            assert value >= high if answer == upward else value <= low
        before = answer


@given(
    st.sampled_from(sorted(SIGNALS)),
    st.sampled_from(OPERATORS),
    st.floats(0.0, 1e6),
    st.floats(0.0, 600_000.0),
)
def test_parsing_is_the_inverse_of_writing(
    signal: str, operator: str, limit: float, held_ms: float
) -> None:
    condition = Condition(
        "c", (Predicate(signal, operator, limit),), 0.0 if operator == "jump" else held_ms
    )
    assert parse_condition(condition_to_data(condition)) == condition


# --- reading -----------------------------------------------------------------------------------


def test_short_and_long_form_read_alike() -> None:
    part = {"signal": "wrench_force", "op": ">", "limit": 5}
    short = parse_condition({"name": "contact", **part, "held_ms": 20})
    long = parse_condition({"name": "contact", "all": [part], "held_ms": 20})
    assert short == long
    assert short.held_ms == 20.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"signal": "wrench_forc"}, ("contact", "signal", "wrench_forc", "'wrench_force'")),
        ({"signal": None}, ("signal", "None", "tracking_error")),
        ({"op": "=>"}, ("op", ">=", "'=>'")),
        ({"op": True}, ("op", "True")),
        ({"limit": "5 N"}, ("limit", "number", "'5 N'")),
        ({"limit": True}, ("limit", "number", "True")),
        ({"limit": NAN}, ("limit", "finite", "nan")),
        ({"limit": 10**400}, ("limit", "finite")),
        ({"held_ms": -1}, ("held_ms", "0 to", "-1")),
        ({"held_ms": 1e9}, ("held_ms", "600000", "1000000000")),
        ({"held_ms": "20"}, ("held_ms", "number", "'20'")),
        ({"max_gap_ms": -2}, ("max_gap_ms", "-2")),
        ({"clear_limit": 6}, ("clear_limit", "at most", "6")),
        ({"op": "jump"}, ("held_ms", "jump", "20")),
        ({"held": 20}, ("field", "'held'", "'held_ms'")),
        ({"all": []}, ("all", "[]")),
    ],
)
def test_errors_name_condition_field_limit_and_value(
    change: dict[str, object], words: tuple[str, ...]
) -> None:
    data = {"name": "contact", "signal": "wrench_force", "op": ">", "limit": 5, "held_ms": 20}
    data.update(change)
    if "all" in change:
        data = {"name": "contact", "all": []}
    with pytest.raises(ConditionError) as caught:
        parse_condition(data, where="touch_target: stage 'touch': end")
    message = str(caught.value)
    assert message.startswith("touch_target: stage 'touch': end: condition")
    for word in words:
        assert word in message


@pytest.mark.parametrize("data", [None, 5, "contact", [], {}, {"name": ""}, {"name": 3}])
def test_what_is_no_condition_is_refused(data: object) -> None:
    with pytest.raises(ConditionError, match="condition"):
        parse_condition(data)


def test_missing_fields_are_named() -> None:
    with pytest.raises(ConditionError, match="limit must be given"):
        parse_condition({"name": "contact", "signal": "wrench_force", "op": ">"})


def test_a_list_refuses_the_same_name_twice() -> None:
    one = {"name": "contact", "signal": "wrench_force", "op": ">", "limit": 5}
    assert parse_conditions(None) == ()
    assert len(parse_conditions([one, {**one, "name": "other"}])) == 2
    with pytest.raises(ConditionError, match="unique.*'contact'"):
        parse_conditions([one, one])
    with pytest.raises(ConditionError, match="list"):
        parse_conditions(one, where="end")


@pytest.mark.parametrize(
    "arguments",
    [
        ("", ">", 1.0),
        ("force", "==", 1.0),
        ("force", ">", NAN),
        ("force", "jump", -1.0),
        ("force", "jump", 1.0, 0.5),
        ("force", "<", 1.0, 0.5),
        ("force", ">", 1.0, math.inf),
    ],
)
def test_predicates_refuse_what_cannot_be_compared(arguments: tuple[object, ...]) -> None:
    with pytest.raises(ConditionError):
        Predicate(*arguments)  # type: ignore[arg-type]


def test_a_condition_needs_a_name_and_a_predicate() -> None:
    with pytest.raises(ConditionError, match="name"):
        Condition("", (Predicate("force", ">", 1.0),))
    with pytest.raises(ConditionError, match="predicate"):
        Condition("empty", ())
