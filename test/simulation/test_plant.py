"""Robot, drives and scene together."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np
import pytest

from kv_action_router.errors import ConfigError, InputError, RobotModelError
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.plant import Plant


def test_same_joints_as_the_robot_model(stepped, robot: RobotModel) -> None:
    assert stepped.drives.names == robot.joint_names
    np.testing.assert_allclose(stepped.drives.effort_limit, robot.effort_limit)
    tip, _ = robot.forward(robot.home)
    np.testing.assert_allclose(stepped.plant.tip, tip, atol=1e-6)


def test_prefix_is_put_before_joint_names(make_stepped: Callable) -> None:
    assert make_stepped(joint_prefix="left_").drives.names[0] == "left_shoulder_pan_joint"


def test_brake_holds_the_arm_at_start(stepped, robot: RobotModel) -> None:
    stepped.run(0.5)
    np.testing.assert_allclose(stepped.plant.position, robot.home, atol=1e-4)
    assert not any(stepped.drives.torque)


@pytest.mark.parametrize("interface", [Interface.EFFORT, Interface.VELOCITY])
def test_without_commands_the_arm_comes_down_and_then_brakes(stepped, interface) -> None:
    stepped.run(
        0.3, lambda now: stepped.drives.command(Interface.VELOCITY, np.full(6, 0.5), (), now)
    )
    assert (stepped.plant.velocity > 0.45).all()
    if interface is Interface.EFFORT:
        stepped.drives.command(interface, stepped.gravity(), (), stepped.now_ns)
    speeds = [np.array(stepped.plant.velocity)]
    for _ in range(150):
        stepped.run(0.002)
        speeds.append(np.array(stepped.plant.velocity))
        if stepped.drives.braked:
            break
    assert len(speeds) * 2 <= 40 + 500 / 8 + 20  # time-out, ramp, the rest of it [ms]
    accelerations = np.abs(np.diff(speeds, axis=0)) / 0.002
    assert accelerations.max() <= stepped.robot.acceleration_limit.min()
    stepped.run(0.010)
    assert np.abs(stepped.plant.velocity).max() < 0.01
    pose = np.array(stepped.plant.position)
    stepped.run(0.5)
    np.testing.assert_allclose(stepped.plant.position, pose, atol=1e-4)


def test_the_brakes_alone_stop_and_hold_a_moving_arm(make_stepped) -> None:
    stepped = make_stepped(quick_stop=0.0)
    stepped.run(
        0.3, lambda now: stepped.drives.command(Interface.VELOCITY, np.full(6, 0.5), (), now)
    )
    stepped.run(0.044)  # the time-out
    assert stepped.drives.braked
    stepped.run(0.030)
    assert np.abs(stepped.plant.velocity).max() < 0.01


def test_nothing_ends_the_quick_stop_but_standstill_and_then_a_pause(stepped) -> None:
    """Commands that come back must not pull the arm after a set-point that has gone on."""
    wanted = np.full(6, 0.5)

    def drive(now: int) -> None:
        with contextlib.suppress(InputError):
            stepped.drives.command(Interface.VELOCITY, wanted, (), now)

    stepped.run(0.3, drive)
    stepped.run(0.060)
    assert stepped.drives.stopped
    assert not stepped.drives.braked
    largest = 0.0
    before = np.array(stepped.plant.velocity)
    for _ in range(150):
        stepped.run(0.002, drive)
        largest = max(largest, float(np.abs(stepped.plant.velocity - before).max()))
        before = np.array(stepped.plant.velocity)
    assert stepped.drives.braked  # whoever commands has not noticed
    assert largest <= 10.0 * 0.002
    with pytest.raises(InputError, match="without a pause of 40 ms after the quick stop"):
        stepped.drives.command(Interface.VELOCITY, wanted, (), stepped.now_ns)
    stepped.run(0.042)
    stepped.run(0.3, drive)
    assert (stepped.plant.velocity > 0.45).all()


def test_a_joint_that_is_blocked_stands_while_the_others_go_on(stepped) -> None:
    def drive(now: int) -> None:
        stepped.drives.command(Interface.VELOCITY, np.full(6, 0.3), (), now)

    stepped.plant.block("elbow_joint")
    stepped.run(0.2, drive)
    moves = np.abs(stepped.plant.velocity) > 0.25
    assert moves.tolist() == [True, True, False, True, True, True]
    stepped.plant.block("")
    stepped.run(0.3, drive)
    assert (stepped.plant.velocity > 0.25).all()
    with pytest.raises(InputError, match=r"blocked joint must be one of .* got 'knee'"):
        stepped.plant.block("knee")


def test_gravity_torque_lets_the_arm_float(stepped, robot: RobotModel) -> None:
    stepped.run(
        0.5,
        lambda now: stepped.drives.command(Interface.EFFORT, stepped.gravity(), (), now),
    )
    np.testing.assert_allclose(stepped.plant.position, robot.home, atol=1e-3)


def test_effort_is_exactly_what_was_commanded(stepped) -> None:
    torque = stepped.gravity() + np.array([5.0, -3.0, 2.0, 0.5, -0.5, 0.2])
    stepped.run(0.1, lambda now: stepped.drives.command(Interface.EFFORT, torque, (), now))
    assert stepped.drives.torque == torque.tolist()
    assert stepped.plant.data.qfrc_applied.tolist() == torque.tolist()


def test_permuted_names_give_the_identical_motion(make_stepped: Callable) -> None:
    plain, permuted = make_stepped(), make_stepped()
    order = [4, 2, 0, 5, 1, 3]
    names = [plain.drives.names[i] for i in order]
    offset = np.array([4.0, 3.0, -2.0, 0.5, 0.4, 0.3])
    for one, labels, sort in ((plain, (), slice(None)), (permuted, names, order)):
        one.run(
            0.2,
            lambda now, one=one, labels=labels, sort=sort: one.drives.command(
                Interface.EFFORT, (one.gravity() + offset)[sort], labels, now
            ),
        )
    assert plain.plant.position.tolist() == permuted.plant.position.tolist()
    assert np.abs(plain.plant.velocity).max() > 0.01


def test_position_interface_reaches_and_holds(stepped, robot: RobotModel) -> None:
    goal = robot.home + np.array([0.1, -0.1, 0.1, 0.1, -0.1, 0.2])
    stepped.run(1.0, lambda now: stepped.drives.command(Interface.POSITION, goal, (), now))
    np.testing.assert_allclose(stepped.plant.position, goal, atol=1e-3)


def test_velocity_interface_follows(stepped) -> None:
    wanted = np.array([0.2, -0.1, 0.1, 0.3, -0.3, 0.5])
    stepped.run(0.4, lambda now: stepped.drives.command(Interface.VELOCITY, wanted, (), now))
    np.testing.assert_allclose(stepped.plant.velocity, wanted, atol=0.01)


def test_stopped_commands_are_the_same_from_every_interface(make_stepped: Callable) -> None:
    for interface in Interface:
        stepped = make_stepped()
        value = np.zeros(6) if interface is not Interface.POSITION else stepped.robot.home
        stepped.run(
            0.02, lambda now, s=stepped, i=interface, v=value: s.drives.command(i, v, (), now)
        )
        stepped.run(0.25)
        assert stepped.drives.braked, interface


def test_lists_of_another_length_are_refused(robot: RobotModel) -> None:
    config = SimulationConfig(torque_constant=(1.0, 2.0))
    with pytest.raises(ConfigError, match="torque_constant must be 6 values"):
        Plant(config, robot.home, robot.velocity_limit)


def test_unknown_robot_is_refused_with_the_known_ones(robot: RobotModel) -> None:
    with pytest.raises(RobotModelError, match="ur5e"):
        Plant(SimulationConfig(robot="ur55"), robot.home, robot.velocity_limit)
