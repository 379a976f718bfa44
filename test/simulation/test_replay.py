"""A run is shown again from its joint positions."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.errors import InputError
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import screw_cell
from kv_action_router.simulation.replay import HEIGHT, WIDTH, Replay


def test_a_pose_is_shown_and_an_unknown_one_refused() -> None:
    config = screw_cell(seed=3)
    robot = RobotModel.load(config.robot)
    names, home = list(robot.joint_names), np.array(robot.home)
    with Replay(config, [(0.50, 0.08, 0.0)]) as replay:
        tip = replay.pose(names, home)
        np.testing.assert_allclose(replay.pose(names[::-1], home[::-1]), tip)
        turned = replay.pose(names, home + np.eye(len(home))[0])
        assert np.hypot(*turned[:2]) == pytest.approx(np.hypot(*tip[:2]))
        for joints, position in (
            (["no_joint", *names[1:]], home),
            (names, home[:-1]),
            (names, home * np.nan),
        ):
            with pytest.raises(InputError):
                replay.pose(joints, position)
        picture = replay.picture()
    assert picture.shape == (HEIGHT, WIDTH, 3) and picture.dtype == np.uint8
    background = picture[2, WIDTH // 2].astype(int)
    assert background.min() > 180  # no sky: a light background of our own
    target = (picture[..., 0] > 150) & (picture[..., 1] < 80) & (picture[..., 2] > 120)
    assert target.sum() > 20


def test_a_screw_goes_down_with_the_bit_and_stays_there() -> None:
    config = screw_cell(seed=3)
    robot = RobotModel.load(config.robot)
    with Replay(config) as replay:
        tip = replay.pose(robot.joint_names, np.array(robot.home))
        head = replay._data.mocap_pos[replay._screw]
        head[:] = tip + np.array((0.0, 0.0, 0.003))  # as it stood before it was driven
        replay.pose(robot.joint_names, np.array(robot.home))
        assert head[2] == pytest.approx(tip[2] + 0.002)
        away = np.array(robot.home)
        away[1] -= 0.2
        replay.pose(robot.joint_names, away)
        assert head[2] == pytest.approx(tip[2] + 0.002)
