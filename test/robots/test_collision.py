"""Padded collision: the same answer as MuJoCo's, pairs named, obstacles exact."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.errors import InputError
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.scene import robot_spec

ROBOT = RobotModel.load()
FREE = ROBOT.collision_model()
TABLE = ROBOT.collision_model(table_height=0.0)


def obstacle(x: float, y: float, z: float, r: float) -> np.ndarray:
    return np.array([[x, y, z, r]])


def test_self_collision_agrees_with_mujoco():
    model = robot_spec("ur5e").compile()
    data = mujoco.MjData(model)
    generator = np.random.default_rng(1)
    seen = {True: 0, False: 0}
    for q in generator.uniform(-np.pi, np.pi, (300, 6)):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        touching = {
            frozenset(
                model.body(model.geom_bodyid[geom]).name for geom in (contact.geom1, contact.geom2)
            )
            for contact in data.contact
        }
        pair = FREE.in_collision(q)
        assert (pair is not None) == bool(touching)
        if pair is not None:
            assert frozenset(pair.split(" - ")) in touching
        seen[pair is not None] += 1
    assert min(seen.values()) > 30  # both answers were asked for


def test_excluded_pairs_cannot_meet():
    """What the MJCF leaves out without a joint between the two never touches anyway."""
    spec = robot_spec("ur5e")
    for name in ("base_upper_arm", "forearm_wrist_2", "wrist_1_wrist_3"):
        spec.delete(spec.exclude(name))
    model = spec.compile()
    data = mujoco.MjData(model)
    left_out = [
        {"base_link_inertia", "upper_arm_link"},
        {"forearm_link", "wrist_2_link"},
        {"wrist_1_link", "wrist_3_link"},
    ]
    for q in np.random.default_rng(2).uniform(-np.pi, np.pi, (500, 6)):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        for contact in data.contact:
            bodies = {model.body(model.geom_bodyid[g]).name for g in contact.geom}
            assert bodies not in left_out


def test_home_is_free_with_padding():
    assert TABLE.in_collision(ROBOT.home, padding=0.05) is None


@pytest.mark.parametrize("x", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("y", [-0.35, 0.0, 0.35])
def test_poses_over_the_table_are_free(x, y):
    q = ROBOT.solve_ik(np.array([x, y, 0.07]))
    assert TABLE.in_collision(q, padding=0.02) is None


def test_table_is_named_and_may_be_touched_by_the_spindle_only():
    q = ROBOT.solve_ik(np.array([0.5, 0.1, 0.01]))
    assert TABLE.in_collision(q, padding=0.0) is None
    assert TABLE.in_collision(q, padding=0.02) == "spindle - table"
    assert TABLE.in_collision(q, padding=0.02, may_touch={"spindle"}) is None
    assert TABLE.in_collision(q, padding=0.02) == "spindle - table"  # the leave was for one call
    assert FREE.in_collision(q, padding=0.02) is None


def test_obstacle_is_named_by_its_row():
    tip = ROBOT.forward(ROBOT.home)[0]
    spheres = np.vstack((obstacle(0.0, 0.8, 0.8, 0.05), obstacle(*tip, 0.01)))
    assert FREE.in_collision(ROBOT.home, spheres) == "spindle - obstacle 1"
    assert FREE.in_collision(ROBOT.home, spheres, may_touch={"spindle"}) is None
    assert FREE.in_collision(ROBOT.home, spheres[:1]) is None


@given(gap=st.floats(0.001, 0.1), radius=st.floats(0.001, 0.1), padding=st.floats(0.0, 0.05))
@settings(max_examples=30, deadline=None)
def test_padding_is_exact_below_the_tip(gap, radius, padding):
    """A sphere ``gap`` below the tip is in collision exactly when the padding exceeds the gap."""
    if abs(gap - padding) < 1e-6:
        return
    x, y, z = ROBOT.forward(ROBOT.home)[0]
    pair = FREE.in_collision(ROBOT.home, obstacle(x, y, z - gap - radius, radius), padding)
    assert (pair is not None) == (padding > gap)


def test_every_obstacle_agrees_with_the_distance_to_the_nearest_axis():
    """The closed form against a dense sampling of the capsules' axes."""
    generator = np.random.default_rng(5)
    spheres = np.column_stack(
        (generator.uniform([-0.6, -0.6, 0.0], [0.8, 0.6, 0.9], (64, 3)), np.full(64, 0.03))
    )
    model = robot_spec("ur5e").compile()
    data = mujoco.MjData(model)
    data.qpos[:] = ROBOT.home
    mujoco.mj_kinematics(model, data)
    base = model.body("base_link_inertia").id
    axes, radii = [], []
    for geom in range(model.ngeom):
        if model.geom_group[geom] != 3 or model.geom_bodyid[geom] == base:
            continue
        capsule = model.geom_type[geom] == mujoco.mjtGeom.mjGEOM_CAPSULE
        half = model.geom_size[geom, 1] if capsule else 0.0
        axis = data.geom_xmat[geom].reshape(3, 3)[:, 2]
        axes.append(data.geom_xpos[geom] + np.linspace(-half, half, 2001)[:, None] * axis)
        radii.append(model.geom_size[geom, 0])
    answers = set()
    for sphere in spheres:
        gap = min(
            np.linalg.norm(points - sphere[:3], axis=1).min() - radius - sphere[3]
            for points, radius in zip(axes, radii, strict=True)
        )
        if abs(gap - 0.02) < 1e-4:
            continue
        pair = FREE.in_collision(ROBOT.home, sphere[None], 0.02)
        assert (pair is not None) == (gap < 0.02)
        answers.add(pair is not None)
    assert answers == {True, False}


def test_first_collision_of_a_path():
    path = np.linspace(ROBOT.home, ROBOT.solve_ik(np.array([0.45, 0.0, 0.0])), 20)
    row, pair = TABLE.first_collision(path, padding=0.02)
    assert pair == "spindle - table"
    assert 10 < row < 20
    assert TABLE.in_collision(path[row - 1], padding=0.02) is None
    assert TABLE.first_collision(path, padding=0.02, may_touch=("spindle",)) is None


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"q": np.full(6, np.nan)}, "q"),
        ({"q": np.zeros(5)}, "q"),
        ({"spheres": np.zeros((3, 3))}, "spheres"),
        ({"spheres": np.full((1, 4), np.nan)}, "spheres"),
        ({"padding": -0.1}, "padding"),
        ({"padding": float("nan")}, "padding"),
        ({"may_touch": ("elbow",)}, "may_touch"),
    ],
)
def test_bad_input_is_named(arguments, field):
    with pytest.raises(InputError, match=field):
        FREE.in_collision(**{"q": ROBOT.home, **arguments})
    assert FREE.in_collision(ROBOT.home) is None  # and it goes on working
