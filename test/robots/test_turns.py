"""Whole turns: continuous joints only, whole multiples only, never further than half a turn off."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.robots.turns import whole_turns

ANGLE = st.floats(-100.0, 100.0)


def test_continuous_joint_is_shifted_and_bounded_is_not():
    shift = whole_turns(
        np.array([-0.5 * math.pi, -0.5 * math.pi]),
        np.array([3.5 * math.pi, 3.5 * math.pi]),
        np.array([True, False]),
    )
    np.testing.assert_allclose(shift, [4.0 * math.pi, 0.0])


@given(ANGLE, ANGLE)
def test_shift_is_whole_turns_and_nearest(position, reference):
    (shift,) = whole_turns(np.array([position]), np.array([reference]), np.array([True]))
    assert shift / math.tau == pytest.approx(round(shift / math.tau), abs=1e-9)
    assert abs(position + shift - reference) <= math.pi + 1e-9
