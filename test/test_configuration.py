"""Parameters declared once: types, bounds and the errors that name them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.configuration import Configuration, parameter
from kv_action_router.contracts import SLOT, SLOT_NAMES, Decision, Stage
from kv_action_router.errors import ConfigError


@dataclass(frozen=True)
class Gains(Configuration):
    kp: float = parameter(50.0, "gain", unit="N m/rad", minimum=0.0, maximum=100.0)
    limits: tuple[float, ...] = parameter((-1.0, 1.0), "limits", minimum=-2.0)
    count: int = parameter(3, "how many", minimum=1)
    mode: str = parameter("effort", "interface", choices=("effort", "velocity"))
    armed: bool = parameter(False, "whether")


def test_integers_and_numpy_scalars_are_accepted_where_a_float_is_wanted():
    assert Gains(kp=50) == Gains(kp=np.float32(50.0)) == Gains(kp=np.int64(50))
    assert isinstance(Gains(kp=50).kp, float)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kp": -1.0}, "kp must be at least 0.0 N m/rad, got -1.0"),
        ({"kp": 101}, "kp must be at most 100.0 N m/rad, got 101.0"),
        ({"kp": float("nan")}, "kp must be finite, got nan"),
        ({"kp": "50"}, "kp must be of type float, got '50'"),
        ({"kp": True}, "kp must be of type float, got True"),
        ({"limits": [0.0, -3.0]}, "limits must be at least -2.0, got -3.0"),
        ({"limits": 1.0}, "limits must be a list, got 1.0"),
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"count": 2.5}, "count must be of type int, got 2.5"),
        ({"mode": "torque"}, "mode must be one of effort, velocity, got 'torque'"),
        ({"armed": 1}, "armed must be of type bool, got 1"),
    ],
)
def test_bad_values_are_refused_by_name_limit_and_value(values, message):
    with pytest.raises(ConfigError) as refused:
        Gains(**values)
    assert str(refused.value) == message


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_whatever_is_accepted_lies_inside_its_bounds(value):
    try:
        kp = Gains(kp=value).kp
    except ConfigError:
        assert not 0.0 <= value <= 100.0
    else:
        assert 0.0 <= kp <= 100.0


def test_slots_are_32_named_numbers():
    assert len(SLOT_NAMES) == len(SLOT) == 32


def test_a_stage_time_is_filled_in_without_touching_the_others():
    decision = Decision(stage_ns=(1, 2, 0, 0, 0))
    assert decision.at_stage(Stage.MATCH, 3) == (1, 2, 3, 0, 0)
    assert decision.stage_ns == (1, 2, 0, 0, 0)
