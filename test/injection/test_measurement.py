"""Joint states: merged by name, NaN is not measured, nothing implausible (K01, K02, K04, K19)."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from injection_builders import MS, START_NS, TwoJoints

from kv_action_router.injection.measurement import JointTracker


def tracker() -> JointTracker:
    return JointTracker(TwoJoints(), velocity_filter=0.004)


@pytest.mark.parametrize("order", list(itertools.permutations(["a", "b", "gripper"])))
def test_each_value_reaches_its_named_joint(order: tuple[str, ...]) -> None:
    joints = tracker()
    position = {"a": 0.1, "b": 0.2, "gripper": 0.9}
    velocity = {"a": 1.0, "b": -1.0, "gripper": 0.0}
    used = joints.update(
        list(order), [position[n] for n in order], [velocity[n] for n in order], [], 0, START_NS
    )
    assert used
    assert joints.complete
    assert joints.position == [0.1, 0.2]
    assert joints.velocity == [1.0, -1.0]


def test_parts_are_merged_and_the_oldest_counts() -> None:
    joints = tracker()
    joints.update(["a"], [0.1], [0.0], [], 0, START_NS)
    assert not joints.complete
    assert joints.missing() == ["b"]
    assert not joints.update(["gripper"], [0.5], [0.0], [], 0, START_NS + MS)
    joints.update(["b"], [0.2], [0.0], [], 0, START_NS + 2 * MS)
    assert joints.complete
    joints.update(["a"], [0.1], [0.0], [], 0, START_NS + 8 * MS)
    assert joints.oldest_ns() == START_NS + 2 * MS


@pytest.mark.parametrize("velocity", [[], [math.nan, math.nan], [0.0]])
@pytest.mark.parametrize("effort", [[], [math.nan, math.nan], [1.0, 2.0]])
def test_velocity_that_is_not_measured_is_differentiated(
    velocity: list[float], effort: list[float]
) -> None:
    joints = tracker()
    for index in range(40):
        now = START_NS + index * 2 * MS
        assert joints.update(["a", "b"], [0.001 * index, 0.0], velocity, effort, now, now)
    assert joints.velocity == pytest.approx([0.5, 0.0], rel=1e-3)


def test_stamps_serve_the_derivative_when_receipts_jitter() -> None:
    joints = tracker()
    for index in range(60):
        stamp = START_NS + index * 2 * MS
        receipt = stamp + (index % 3) * 700_000
        joints.update(["a", "b"], [0.002 * index, 0.0], [], [], stamp, receipt)
    assert joints.velocity[0] == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_position_that_is_not_finite_is_refused_and_the_next_sample_serves(bad: float) -> None:
    joints = tracker()
    joints.update(["a", "b"], [0.1, 0.2], [0.0, 0.0], [], 0, START_NS)
    assert not joints.update(["a", "b"], [bad, 0.2], [0.0, 0.0], [], 0, START_NS + 2 * MS)
    assert joints.position == [0.1, 0.2]
    assert (joints.refused, "position of a" in joints.refusal) == (1, True)
    assert joints.update(["a", "b"], [0.1, 0.2], [0.0, 0.0], [], 0, START_NS + 4 * MS)


def test_a_jump_of_the_position_is_refused_until_time_explains_it() -> None:
    joints = tracker()
    joints.update(["a", "b"], [0.0, 0.0], [0.0, 0.0], [], 0, START_NS)
    assert not joints.update(["a", "b"], [0.5, 0.0], [0.0, 0.0], [], 0, START_NS + 2 * MS)
    assert "a jumped by 0.500 rad" in joints.refusal
    assert joints.update(["a", "b"], [0.005, 0.0], [0.0, 0.0], [], 0, START_NS + 4 * MS)
    assert joints.update(["a", "b"], [0.5, 0.0], [0.0, 0.0], [], 0, START_NS + 300 * MS)


def test_implausible_velocity_counts_as_not_measured() -> None:
    joints = tracker()
    joints.update(["a", "b"], [0.0, 0.0], [0.0, 0.0], [], 0, START_NS)
    joints.update(["a", "b"], [0.0, 0.0], [1e6, 0.0], [], 0, START_NS + 2 * MS)
    assert joints.velocity == [0.0, 0.0]


def test_no_time_between_two_samples_is_refused() -> None:
    joints = tracker()
    joints.update(["a", "b"], [0.0, 0.0], [], [], 0, START_NS)
    assert not joints.update(["a", "b"], [0.001, 0.0], [], [], 0, START_NS)
    assert not joints.update(["a", "b"], [0.001, 0.0], [], [], 0, START_NS - MS)
    assert joints.refused == 2


@pytest.mark.parametrize(
    ("stamps", "used"),
    [
        ([0, 0, 0], [True, True, True]),  # no stamps at all: receipts serve
        ([9, 7, 10], [True, False, True]),  # out of order: what is older is no news
        ([9, 3, 4, 5, 6, 7, 8], [True] + [False] * 4 + [True] * 2),  # a clock that was set back
        ([9, 9, 9], [True, False, False]),  # the same sample over and over is no news
    ],
)
def test_stamps_tell_only_what_is_no_news(stamps: list[int], used: list[bool]) -> None:
    joints = tracker()
    answers = [
        joints.update(["a", "b"], [0.1, 0.2], [0.0, 0.0], [], stamp, START_NS + i * 2 * MS)
        for i, stamp in enumerate(stamps)
    ]
    assert answers == used


def test_sizes_and_names_that_do_not_fit_are_refused() -> None:
    joints = tracker()
    assert not joints.update(["a", "b"], [0.1], [], [], 0, START_NS)
    assert not joints.update(["a", "a", "b"], [0.1, 0.2, 0.3], [], [], 0, START_NS + MS)
    assert joints.refused == 2
    assert not joints.complete


@given(st.lists(st.tuples(*[st.floats(allow_nan=True)] * 4, st.integers(0, 3)), max_size=30))
def test_state_is_finite_whatever_comes(samples: list[tuple]) -> None:
    joints = tracker()
    now = START_NS
    for pa, pb, va, vb, step in samples:
        now += step * MS
        joints.update(["a", "b"], [pa, pb], [va, vb], [], 0, now)
        assert all(map(math.isfinite, [*joints.position, *joints.velocity]))


def test_what_was_held_up_is_refused_and_says_so() -> None:
    joints = JointTracker(TwoJoints(), velocity_filter=0.004, delay_limit_ns=20 * MS)
    for i in range(10):
        at = i * 2 * MS
        assert joints.update(["a", "b"], [0.1, 0.2], [0.0, 0.0], [], 7 + at, START_NS + at)
    late = START_NS + 118 * MS
    assert not joints.update(["a", "b"], [0.3, 0.4], [0.0, 0.0], [], 7 + 20 * MS, late)
    assert joints.refusal == "late by 98 ms (limit 20 ms)"
    assert joints.position == [0.1, 0.2]
    assert joints.oldest_ns() == START_NS + 18 * MS


def test_two_drivers_with_clocks_of_their_own_are_not_blamed_for_it() -> None:
    joints = JointTracker(TwoJoints(), velocity_filter=0.004, delay_limit_ns=20 * MS)
    for i in range(10):
        at = START_NS + i * 2 * MS
        assert joints.update(["a"], [0.1], [0.0], [], 1_000_000_000_000 + i * 2 * MS, at)
        assert joints.update(["b"], [0.2], [0.0], [], 5 + i * 2 * MS, at + MS)
