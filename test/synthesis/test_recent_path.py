"""Beside the path, not behind on it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.synthesis.recent_path import RecentPath

DT = 0.016  # [s]


def curve(t: float) -> list[float]:
    return [math.sin(1.3 * t), 0.6 * math.cos(1.1 * t), 0.4 * t]


def farthest(lag: float, beside: float = 0.0, seconds: float = 2.0) -> float:
    """Return the largest distance of an arm that is late [s], and off in one joint [rad]."""
    path, most = RecentPath(), 0.0
    for step in range(int(seconds / DT)):
        t = 1.0 + step * DT
        late = curve(max(1.0, t - lag))  # it begins at rest, on its path
        position = [late[0], late[1], late[2]]
        position[0] += beside * 0.6
        position[1] += beside * 0.8
        most = max(most, path.beside(position, curve(t), 0.0))
    return most


@given(st.floats(0.0, 0.2))
def test_an_arm_that_only_lags_is_on_its_path(lag):
    assert farthest(lag) < 0.002


def test_without_its_past_the_same_arm_would_be_far_off():
    now, before = curve(2.0), curve(1.95)
    assert max(abs(a - b) for a, b in zip(now, before, strict=True)) > 0.02


@given(st.floats(0.0, 0.15), st.floats(0.05, 0.3))
def test_an_arm_that_is_beside_its_path_is_seen(lag, beside):
    """Of what it is off, the part along the path does not count."""
    assert 0.25 * beside < farthest(lag, beside) <= 0.8 * beside + 0.002


@given(st.floats(0.0, 0.5), st.floats(0.0, 0.5))
def test_the_answer_is_never_more_than_the_distance_from_the_set_point(lag, enough):
    path = RecentPath()
    for step in range(60):
        t = step * DT
        position, setpoint = curve(t - lag), curve(t)
        direct = max(abs(a - b) for a, b in zip(position, setpoint, strict=True))
        assert path.beside(position, setpoint, enough) <= direct


def test_one_that_is_near_enough_needs_no_better_answer():
    path = RecentPath()
    path.beside([0.0], [0.0], 0.0)
    path.beside([0.0], [0.01], 0.02)
    assert path.beside([0.0], [0.01], 0.02) == pytest.approx(0.01)
    assert path.beside([0.0], [0.03], 0.02) == pytest.approx(0.0)


def test_a_set_point_that_stands_still_is_a_place():
    path = RecentPath()
    for _ in range(3):
        assert path.beside([0.1, 0.2], [0.0, 0.0], 0.0) == pytest.approx(0.2)
