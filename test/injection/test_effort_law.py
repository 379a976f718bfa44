"""The calibrated torque constant in the command, and what another value does to it: no jump."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from injection_builders import TwoJoints, execution_value

from kv_action_router.contracts import SLOT, ExecutionValue
from kv_action_router.errors import InputError
from kv_action_router.injection.effort_law import EffortLaw, State
from kv_action_router.injection.execution_table import ExecutionTable, Snapshot
from kv_action_router.injection.laws import DutyLaw

MODEL = TwoJoints()
ZERO = [0.0, 0.0]
REST = State([0.3, -0.2], ZERO, ZERO)
DT = 0.002


def next_value(value: ExecutionValue, **slots: float) -> ExecutionValue:
    changed = value.slots.copy()
    for name, number in slots.items():
        changed[:, SLOT[name]] = number
    return dataclasses.replace(
        value, slots=changed, version=value.version + 1, base_version=value.version
    )


def limits(**slots: float) -> Snapshot:
    table = ExecutionTable(MODEL, execution_value())
    return table.apply(next_value(table.current.value, **slots)) if slots else table.current


def run(law, snapshot: Snapshot, measured: State = REST, ticks: int = 1) -> list[float]:
    output = [0.0, 0.0]
    for _ in range(ticks):
        law.compute(DT, REST, measured, snapshot, 1.0, output)
    return output


@given(st.floats(5.0, 15.0))
def test_a_drive_gives_what_the_law_wants_whatever_its_constant_is(constant):
    """It turns what it is sent into a current by the data sheet's constant, 10 N m/A."""
    law, plain = EffortLaw(MODEL), EffortLaw(MODEL)
    wanted = run(plain, limits())
    sent = run(law, limits(torque_constant=constant))
    given_torque = np.array(sent) / 10.0 * np.float32(constant)
    np.testing.assert_allclose(given_torque, wanted, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(law.efforts, wanted)


def test_with_the_data_sheets_constant_nothing_is_scaled():
    law, snapshot = EffortLaw(MODEL), limits()
    assert snapshot.true_to_name
    output = [0.0, 0.0]
    law.compute(DT, REST, REST, snapshot, 1.0, output)
    assert law.efforts is output


@given(st.floats(5.0, 15.0), st.floats(-1e4, 1e4))
def test_no_drive_is_sent_more_than_it_takes(constant, far):
    law = EffortLaw(MODEL)
    measured = State([0.3 + far, -0.2 - far], ZERO, ZERO)
    sent = run(law, limits(torque_constant=constant), measured)
    assert (np.abs(sent) <= MODEL.effort_limit).all()


def test_an_aged_drive_can_give_less():
    snapshot, full = limits(torque_constant=5.0), limits()
    assert snapshot.effort_scale == (2.0, 2.0)
    most = np.minimum(full.effort_limit, np.array(MODEL.effort_limit) / 2.0)
    np.testing.assert_allclose(snapshot.effort_limit, most)


@given(
    st.floats(5.0, 15.0), st.floats(5.0, 15.0), st.floats(0.0, 2.0), st.floats(0.0, 2.0),
    st.integers(1, 50),
)  # fmt: skip
def test_another_value_makes_no_jump(before, after, friction, more_friction, ticks):
    law = EffortLaw(MODEL)
    moving = State(REST.position, [0.4, -0.4], ZERO)
    measured = State([0.301, -0.201], [0.4, -0.4], ZERO)
    table = ExecutionTable(MODEL, execution_value())
    first = table.apply(
        next_value(table.current.value, torque_constant=before, coulomb_friction=friction,
                   integral_limit=1e3)
    )  # fmt: skip
    second = table.apply(
        next_value(first.value, torque_constant=after, coulomb_friction=more_friction)
    )
    output = [0.0, 0.0]
    for _ in range(ticks):
        law.compute(DT, moving, measured, first, 1.0, output)
    sent = output.copy()
    integrated = max(
        gain * 0.001 * DT * max(first.effort_scale + second.effort_scale) for gain in first.integral
    )
    proportional = [
        gain * 0.001 * abs(new - old)
        for gain, old, new in zip(
            first.proportional, first.effort_scale, second.effort_scale, strict=True
        )
    ]
    law.compute(DT, moving, measured, second, 1.0, output)
    inside = np.abs(law.pid.unclamped) <= second.effort_limit
    steps = np.abs(np.subtract(output, sent))
    bound = np.array(proportional) + 2.0 * integrated + 1e-6
    assert (steps <= bound)[inside & (np.abs(sent) < MODEL.effort_limit)].all()


def test_what_the_integrals_had_made_up_for_is_theirs_again():
    """An aged drive is held by its integral; once the scale knows the age, it has nothing to do."""
    law, share = EffortLaw(MODEL), 0.8
    table = ExecutionTable(MODEL, execution_value())
    plain = table.apply(next_value(table.current.value, integral_limit=1e3))
    aged = table.apply(next_value(plain.value, torque_constant=8.0))
    run(law, plain)
    feed_forward = list(law.feed_forward)
    law.pid.integral[:] = [torque / share - torque for torque in feed_forward]
    run(law, aged)
    np.testing.assert_allclose(law.pid.integral, 0.0, atol=1e-4)


def test_a_tick_that_is_taken_back_takes_the_value_up_again():
    law = EffortLaw(MODEL)
    table = ExecutionTable(MODEL, execution_value())
    plain = table.current
    aged = table.apply(next_value(plain.value, torque_constant=8.0, integral_limit=1e3))
    run(law, plain)
    law.save()
    sent = run(law, aged)
    law.restore()
    assert run(law, aged) == pytest.approx(sent)


def test_a_law_that_begins_takes_nothing_up():
    law = EffortLaw(MODEL)
    run(law, limits())
    law.reset()
    run(law, limits(torque_constant=8.0))
    assert law.pid.integral == pytest.approx([0.0, 0.0])


def test_the_duty_is_that_of_the_current():
    law, efforts = DutyLaw(MODEL, []), EffortLaw(MODEL)
    snapshot = limits(torque_constant=8.0)
    duty = [0.0, 0.0]
    law.compute(DT, REST, REST, snapshot, 1.0, duty)
    wanted = run(efforts, limits())
    rated_current = snapshot.value.slots[:, SLOT["rated_current"]]
    np.testing.assert_allclose(duty, np.array(wanted) / 8.0 / rated_current, rtol=1e-6)


@pytest.mark.parametrize("constant", [4.9, 15.1, 1e-3, 900.0])
def test_a_constant_far_from_the_data_sheets_is_refused(constant):
    table = ExecutionTable(MODEL, execution_value())
    before = table.current
    with pytest.raises(
        InputError, match=r"torque_constant must be 5 to 15 N m/A .* its data sheet"
    ):
        table.apply(next_value(before.value, torque_constant=constant))
    assert table.current is before


def test_scales_are_finite():
    assert all(map(math.isfinite, limits(torque_constant=5.0).effort_scale))
