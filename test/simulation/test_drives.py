"""The drives: interfaces, time-out, refusals, last writer."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.errors import InputError
from kv_action_router.simulation.drives import DriveBank, Interface
from kv_action_router.simulation.thermal import ThermalModel

NAMES = ("a", "b", "c")
LIMIT = np.array([10.0, 20.0, 5.0])
DT = 0.001
MS = 1_000_000


def make_bank() -> DriveBank:
    constant = np.array([2.0, 2.0, 1.0])
    thermal = ThermalModel(
        LIMIT / constant,
        np.full(3, 25.0),
        ambient=25.0,
        rated_rise=80.0,
        time_constant=600.0,
        temperature_coefficient=0.0039,
    )
    return DriveBank(
        NAMES, LIMIT, np.full(3, 3.0), constant, thermal, timeout=0.040, quick_stop=8.0
    )


def tick(bank: DriveBank, now_ns: int) -> np.ndarray:
    bank.update(np.zeros(3), np.zeros(3), DT, now_ns)
    return np.array(bank.apply(bank.wanted_acceleration, DT))


def test_brakes_until_a_command_comes() -> None:
    bank = make_bank()
    assert bank.braked
    assert not tick(bank, 0).any()
    bank.command(Interface.EFFORT, np.array([1.0, 2.0, 3.0]), (), 0)
    assert not bank.braked
    assert tick(bank, MS).tolist() == [1.0, 2.0, 3.0]


def test_brakes_after_the_time_out_and_not_before() -> None:
    bank = make_bank()
    bank.command(Interface.EFFORT, np.ones(3), (), 0)
    tick(bank, 40 * MS)
    assert not bank.braked
    assert not tick(bank, 40 * MS + 1).any()
    assert bank.braked


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([1.0, np.nan, 1.0], ()),
        ([1.0, np.inf, 1.0], ()),
        ([1.0, 1.0], ()),
        ([], ()),
        ([1.0, 1.0, 1.0, 1.0], ()),
        ([[1.0, 1.0, 1.0]], ()),
        ([1.0, 1.0, 1.0], ("a", "b", "x")),
        ([1.0, 1.0, 1.0], ("a", "b", "b")),
        ([1.0, 1.0, 1.0], ("a", "b")),
    ],
)
def test_refused_command_changes_nothing(values: list[float], names: tuple[str, ...]) -> None:
    bank = make_bank()
    bank.command(Interface.EFFORT, np.array([1.0, 2.0, 3.0]), (), 0)
    with pytest.raises(InputError):
        bank.command(Interface.VELOCITY, np.array(values), names, 30 * MS)
    assert bank.refused == 1
    assert bank.interface is Interface.EFFORT
    assert tick(bank, 35 * MS).tolist() == [1.0, 2.0, 3.0]
    tick(bank, 41 * MS)  # the refused command did not prolong the last good one
    assert bank.braked
    bank.command(Interface.EFFORT, np.ones(3), (), 71 * MS)
    assert tick(bank, 71 * MS).tolist() == [1.0, 1.0, 1.0]


def test_stopped_drives_take_nothing_before_a_pause() -> None:
    bank = make_bank()
    bank.command(Interface.EFFORT, np.ones(3), (), 0)
    tick(bank, 41 * MS)
    assert bank.stopped
    bank.command(Interface.EFFORT, np.ones(3), (), 42 * MS)  # the silence before was the pause
    assert not bank.stopped
    tick(bank, 83 * MS)
    for now in (84, 100, 139):
        with contextlib.suppress(InputError):
            bank.command(Interface.EFFORT, np.array([np.nan, 1.0, 1.0]), (), now * MS)
    with pytest.raises(InputError, match="without a pause"):
        bank.command(Interface.EFFORT, np.ones(3), (), 150 * MS)
    assert bank.stopped
    bank.command(Interface.EFFORT, np.ones(3), (), 190 * MS)
    assert not bank.stopped


def stamped(bank: DriveBank, sent_us: int, now_us: int) -> None:
    bank.command(Interface.EFFORT, np.full(3, 0.5), (), now_us * 1000, sent_us % 2**32)


@pytest.mark.parametrize("start", [1_000_000, 2**32 - 5_000])  # the stamp begins anew at 2^32 us
def test_late_commands_and_overtaken_ones_are_refused(start: int) -> None:
    bank = make_bank()
    for i in range(5):
        stamped(bank, start + 2000 * i, start + 2000 * i + 300)
    with pytest.raises(InputError, match="late by 17 ms"):
        stamped(bank, start + 10_000, start + 27_300)
    with pytest.raises(InputError, match=r"older than the one before by 2\.0 ms"):
        stamped(bank, start + 8_000, start + 27_400)
    assert bank.refused == 2
    stamped(bank, start + 27_000, start + 27_500)
    assert bank.refused == 2


def test_a_frozen_command_does_not_feed_the_watchdog() -> None:
    bank = make_bank()
    stamped(bank, 1000, 1100)
    for ms in range(2, 41):
        stamped(bank, 1000, 1000 * ms)
        tick(bank, ms * MS)
    assert not bank.stopped
    stamped(bank, 1000, 42_000)
    tick(bank, 42 * MS)
    assert bank.stopped
    assert bank.refused == 0


def test_a_position_farther_away_than_the_following_error_is_refused() -> None:
    bank = make_bank()
    tick(bank, 0)
    with pytest.raises(InputError, match=r"position command of b must be within 0\.3 rad"):
        bank.command(Interface.POSITION, np.array([0.2, -0.31, 0.0]), (), 0)
    assert bank.stopped
    bank.command(Interface.POSITION, np.array([0.2, -0.29, 0.0]), (), 0)
    assert not bank.stopped


def test_velocities_are_reached_on_the_drives_own_profile() -> None:
    bank = make_bank()
    bank.command(Interface.VELOCITY, np.full(3, 2.0), (), 0)
    tick(bank, 0)
    first = bank.wanted_acceleration
    assert first is not None
    # a step of 30 rad/s^2 times 1 ms, not of 2 rad/s, is what the loop sees
    assert (first <= 30.0 * DT * (160.0 + 6400.0 * DT) + 1e-9).all()


def test_refusal_names_field_and_joints() -> None:
    bank = make_bank()
    with pytest.raises(InputError, match=r"effort command names must be each of a, b, c once"):
        bank.command(Interface.EFFORT, np.ones(3), ("a", "b", "x"), 0)


@given(st.permutations(range(3)))
def test_values_reach_their_named_joint(order: list[int]) -> None:
    bank = make_bank()
    values = np.array([1.0, 2.0, 3.0])
    bank.command(Interface.EFFORT, values[order], [NAMES[i] for i in order], 0)
    assert tick(bank, 0).tolist() == values.tolist()


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=3))
def test_torque_stays_inside_the_limits(values: list[float]) -> None:
    bank = make_bank()
    bank.command(Interface.EFFORT, np.array(values), (), 0)
    torque = tick(bank, 0)
    assert (np.abs(torque) <= LIMIT).all()
    assert (np.abs(bank.duty) <= 1.0).all()
    np.testing.assert_allclose(torque, np.clip(values, -LIMIT, LIMIT))
    np.testing.assert_allclose(bank.current, torque / bank.torque_constant)


def test_last_writer_is_in_force() -> None:
    bank = make_bank()
    bank.command(Interface.EFFORT, np.ones(3), (), 0)
    bank.command(Interface.VELOCITY, np.array([0.5, 0.0, 0.0]), (), 1)
    bank.update(np.zeros(3), np.zeros(3), DT, 2)
    acceleration = bank.wanted_acceleration
    assert acceleration is not None
    assert acceleration[0] > 0.0
    bank.command(Interface.EFFORT, np.ones(3), (), 3)
    bank.update(np.zeros(3), np.zeros(3), DT, 4)
    assert bank.wanted_acceleration is None


def test_losses_warm_the_windings() -> None:
    bank = make_bank()
    bank.command(Interface.EFFORT, np.array([10.0, 10.0, 0.0]), (), 0)
    for _ in range(1000):
        bank.apply(None, DT)
    bank.warm()
    rise = bank.thermal.temperature - 25.0
    # One second at rated current of 80 K in 600 s, and at half of it.
    np.testing.assert_allclose(rise, [80.0 / 600.0, 20.0 / 600.0, 0.0], rtol=2e-3)
