"""Control laws: each interface inside its limits, whatever the state."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from injection_builders import TwoJoints, execution_value

from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.effort_law import EffortLaw, State
from kv_action_router.injection.execution_table import ExecutionTable, Snapshot
from kv_action_router.injection.laws import DutyLaw, PositionLaw, VelocityLaw, make_law

MODEL = TwoJoints()
ZERO = [0.0, 0.0]
LIMITS = ExecutionTable(MODEL, execution_value()).current
anything = st.floats(allow_nan=True, allow_infinity=True)
pair = st.tuples(anything, anything).map(list)


def limits(**slots: float) -> Snapshot:
    return ExecutionTable(MODEL, execution_value(**slots)).current


def at(position: list[float], velocity: list[float] = ZERO) -> State:
    return State(position, velocity, ZERO)


def test_gravity_inertia_and_friction_are_fed_forward() -> None:
    law, output = EffortLaw(MODEL), [0.0, 0.0]
    state = State([0.0, 0.0], [1.0, 0.0], [2.0, -3.0])
    friction = limits(coulomb_friction=1.5, viscous_friction=0.5)
    law.compute(0.002, state, at([0.0, 0.0], [1.0, 0.0]), friction, 1.0, output)
    assert output == pytest.approx([5.0 + 2.0 + 0.5 + 1.5, -3.0])


def test_gravity_scale_changes_gravity_only() -> None:
    law, output = EffortLaw(MODEL), [0.0, 0.0]
    state = State([0.0, 0.0], [0.0, 0.0], [2.0, 0.0])
    law.compute(0.002, state, at([0.0, 0.0]), limits(gravity_scale=0.5), 1.0, output)
    assert output == pytest.approx([2.5 + 2.0, 0.0])


def test_without_joint_states_only_the_model_speaks() -> None:
    law, output = EffortLaw(MODEL), [0.0, 0.0]
    law.compute(0.002, State([0.3, 0.0], [1.0, 1.0], ZERO), None, limits(), 1.0, output)
    assert output == pytest.approx([5.0 * math.cos(0.3), 0.0])


def test_without_stiffness_only_velocity_is_damped() -> None:
    law, output = EffortLaw(MODEL), [0.0, 0.0]
    law.compute(0.002, at([0.5, 0.0]), at([0.0, 0.0], [0.1, 0.0]), limits(), 0.0, output)
    assert output == pytest.approx([5.0 - 60.0 * 0.1, 0.0])


def test_effort_limits_hold_but_never_drop_the_arm() -> None:
    law, output = EffortLaw(MODEL), [0.0, 0.0]
    weak = limits(derating=0.02)  # 1 N m, while 5 N m hold the arm
    law.compute(0.002, at([1.0, 1.0]), at(ZERO), weak, 1.0, output)
    assert output == pytest.approx([5.5, 1.0])
    law.compute(0.002, at([-1.0, -1.0]), at(ZERO), weak, 1.0, output)
    assert output == pytest.approx([-5.5, -1.0])


def test_saved_integrals_come_back() -> None:
    law, output = EffortLaw(MODEL), [0.0, 0.0]
    law.compute(0.002, at([0.01, 0.0]), at(ZERO), limits(), 1.0, output)
    kept = list(law.pid.integral)
    law.save()
    law.compute(0.002, at([0.01, 0.0]), at(ZERO), limits(), 1.0, output)
    law.restore()
    assert law.pid.integral == kept
    law.reset()
    assert law.pid.integral == ZERO


def test_duty_is_the_share_of_the_torque_at_rated_current() -> None:
    law, output = DutyLaw(MODEL, ()), [0.0, 0.0]
    law.compute(0.002, at(ZERO), at(ZERO), limits(), 1.0, output)
    assert output == pytest.approx([5.0 / 50.0, 0.0])
    law.compute(0.002, at([3.0, -3.0]), at(ZERO), limits(rated_current=2.0), 1.0, output)
    assert output == [1.0, -1.0]


def test_duty_is_0_in_the_fail_safe_for_gravity_free_drives_only() -> None:
    law, output = DutyLaw(MODEL, ("b",)), [0.0, 0.0]
    for _ in range(10):
        law.compute(0.002, at([0.01, 0.01]), at(ZERO), LIMITS, 1.0, output)
    law.compute(0.002, at(ZERO), at(ZERO), limits(), 0.0, output)
    assert output[0] > 0.1  # holds the load, its integral kept
    assert output[1] == 0.0
    law.compute(0.002, at(ZERO), at(ZERO), limits(), 1.0, output)
    assert output[1] == 0.0  # the integral was cleared


def test_velocity_corrects_the_position_inside_limits() -> None:
    law, output = VelocityLaw(MODEL, gain=5.0), [0.5, 0.0]
    law.compute(0.002, at([0.1, 0.0], [0.5, 0.0]), at([0.098, 0.0]), limits(), 1.0, output)
    assert output == pytest.approx([0.5 + 5.0 * 0.002, 0.0])
    law.compute(0.002, at([9.0, -9.0]), at(ZERO), limits(), 1.0, output)
    assert output == pytest.approx([0.51 + 0.02, -0.02])  # a_max dt


def test_position_is_the_set_point() -> None:
    output = [0.0, 0.0]
    PositionLaw(MODEL).compute(0.002, at([0.4, -0.3]), at(ZERO), limits(), 1.0, output)
    assert output == [0.4, -0.3]


@pytest.mark.parametrize(
    ("interface", "kind"),
    [
        ("effort", EffortLaw),
        ("duty", DutyLaw),
        ("velocity", VelocityLaw),
        ("position", PositionLaw),
    ],
)
def test_each_interface_has_its_law(interface: str, kind: type) -> None:
    assert isinstance(make_law(MODEL, InjectionConfig(command_interface=interface)), kind)


@pytest.mark.parametrize("interface", ["effort", "duty", "velocity"])
@settings(max_examples=50)
@given(
    samples=st.lists(
        st.tuples(anything, pair, pair, pair, pair, st.booleans(), st.floats(0.0, 1.0)),
        max_size=8,
    )
)
def test_commands_are_finite_and_bounded_whatever_comes(interface: str, samples: list) -> None:
    law = make_law(MODEL, InjectionConfig(command_interface=interface))
    most = {"effort": 50.0, "duty": 1.0, "velocity": 2.0}[interface]
    output = [0.0, 0.0]
    for dt, position, velocity, measured, speed, blind, stiffness in samples:
        reference = State(position, velocity, velocity)
        state = None if blind else State(measured, speed, ZERO)
        law.compute(dt, reference, state, LIMITS, stiffness, output)
        assert all(-most <= value <= most for value in output)
