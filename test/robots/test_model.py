"""The robot model as the stages use it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.errors import InputError, MissingJointsError
from kv_action_router.robots.model import RobotModel

UR_JOINTS = (
    "shoulder_pan_joint",
    "shoulder_lift_joint",
    "elbow_joint",
    "wrist_1_joint",
    "wrist_2_joint",
    "wrist_3_joint",
)


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return RobotModel.load()


def test_joint_names_carry_the_prefix(robot):
    assert robot.joint_names == UR_JOINTS
    assert RobotModel.load("ur5e", prefix="left_").joint_names[2] == "left_elbow_joint"


@given(names=st.permutations([*UR_JOINTS, "gripper", "wheel"]))
@settings(max_examples=30)
def test_order_brings_each_value_to_its_joint(names):
    robot = _shared()
    values = np.arange(len(names), dtype=float)
    ordered = values[robot.order(names)]
    assert [names[int(v)] for v in ordered] == list(UR_JOINTS)


_MODELS: list[RobotModel] = []


def _shared() -> RobotModel:
    if not _MODELS:
        _MODELS.append(RobotModel.load())
    return _MODELS[0]


def test_order_names_all_missing_joints(robot):
    with pytest.raises(MissingJointsError, match="elbow_joint, wrist_3_joint"):
        robot.order([name for name in UR_JOINTS if name not in ("elbow_joint", "wrist_3_joint")])


def test_order_refuses_a_joint_twice(robot):
    with pytest.raises(InputError, match="repetition of elbow_joint"):
        robot.order([*UR_JOINTS, "elbow_joint"])


def test_order_memory_is_bounded(robot):
    for index in range(200):
        robot.order([*UR_JOINTS, f"extra_{index}"])
    assert len(robot._orders) <= 64


def test_home_looks_down_above_the_table(robot):
    position, rotation = robot.forward(robot.home)
    np.testing.assert_allclose(position, [0.45, 0.0, 0.35], atol=1e-3)
    np.testing.assert_allclose(rotation, np.diag([1.0, -1.0, -1.0]), atol=1e-3)
    singular_values = np.linalg.svd(robot.jacobian(robot.home), compute_uv=False)
    assert singular_values[-1] > 0.05


def test_jacobian_is_the_derivative_of_the_tip(robot):
    q = robot.home + 0.1
    step = 1e-6
    jacobian = robot.jacobian(q)
    position, rotation = robot.forward(q)
    for index in range(robot.n):
        moved = q.copy()
        moved[index] += step
        there, turned = robot.forward(moved)
        np.testing.assert_allclose(jacobian[:3, index], (there - position) / step, atol=1e-5)
        np.testing.assert_allclose(
            jacobian[3:, index], pin.log3(turned @ rotation.T) / step, atol=1e-5
        )


def test_results_do_not_change_with_the_next_call(robot):
    position, rotation = robot.forward(robot.home)
    kept = position.copy(), rotation.copy()
    robot.forward(robot.home + 0.5)
    np.testing.assert_array_equal(position, kept[0])
    np.testing.assert_array_equal(rotation, kept[1])


def test_gravity_torque_is_written_in_place(robot):
    first = robot.gravity_torque(robot.home)
    assert robot.gravity_torque(robot.home + 0.1) is first


def test_limits_cannot_be_written(robot):
    for array in (robot.lower, robot.velocity_limit, robot.home, robot.continuous):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_link_spheres_cover_what_is_seen(robot):
    """Every point on the surface of the looks lies inside a sphere: a camera sees just these."""
    model, data = robot.kinematics.model, robot.kinematics.data
    looks = pin.buildGeomFromMJCF(model, str(robot.description.mjcf), pin.GeometryType.VISUAL)
    workspace = looks.createData()
    angle = np.linspace(0.0, 2.0 * np.pi, 24)
    ring = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    for q in (robot.home, np.linspace(-1.0, 1.0, 6)):
        pin.updateGeometryPlacements(model, data, looks, workspace, q)
        spheres = robot.link_spheres(q).copy()
        for index, item in enumerate(looks.geometryObjects):
            if item.name == "base_flange":  # bolted to the table
                continue
            radius = item.geometry.radius
            half = getattr(item.geometry, "halfLength", 0.0)
            for height in np.linspace(-half, half, 9):
                for share in (0.5, 1.0):
                    local = np.column_stack((ring * radius * share, np.full(24, height)))
                    placement = workspace.oMg[index]
                    points = local @ placement.rotation.T + placement.translation
                    gap = np.linalg.norm(points[:, None] - spheres[None, :, :3], axis=2)
                    outside = (gap - spheres[:, 3]).min(axis=1)
                    assert outside.max() <= 1e-9, item.name


def test_link_spheres_leave_free_space_free(robot):
    spheres = robot.link_spheres(robot.home)
    for point in ((0.45, 0.0, 0.28), (0.45, 0.15, 0.3), (0.3, 0.0, 0.2)):
        assert (np.linalg.norm(spheres[:, :3] - point, axis=1) > spheres[:, 3]).all()
