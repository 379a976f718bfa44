"""The UR5e's MJCF: MuJoCo and pinocchio read the same robot from it, and it is the maker's."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from kv_action_router.robots.description import ROBOTS
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.scene import robot_spec

MJCF = str(ROBOTS / "ur5e.xml")
MASSES = {
    "base_link_inertia": 4.0,
    "shoulder_link": 3.761,
    "upper_arm_link": 8.058,
    "forearm_link": 2.846,
    "wrist_1_link": 1.37,
    "wrist_2_link": 1.3,
    "wrist_3_link": 0.365,
    "tool": 0.45,
    "spindle": 0.15,
}
# The maker's chain: x, y, z [m] and roll, pitch, yaw [rad] of each joint in its parent's frame.
CHAIN = (
    ((0.0, 0.0, 0.1625), (0.0, 0.0, 0.0)),
    ((0.0, 0.0, 0.0), (np.pi / 2, 0.0, 0.0)),
    ((-0.425, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ((-0.3922, 0.0, 0.1333), (0.0, 0.0, 0.0)),
    ((0.0, -0.0997, 0.0), (np.pi / 2, 0.0, 0.0)),
    ((0.0, 0.0996, 0.0), (np.pi / 2, np.pi, np.pi)),
)


@pytest.fixture(scope="module")
def simulated() -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = robot_spec("ur5e").compile()
    return model, mujoco.MjData(model)


@pytest.fixture(scope="module")
def robot() -> RobotModel:
    return RobotModel.load("ur5e")


def configurations(count: int) -> np.ndarray:
    return np.random.default_rng(7).uniform(-np.pi, np.pi, (count, 6))


def test_masses_are_the_makers(simulated):
    model, _ = simulated
    for body, mass in MASSES.items():
        assert model.body(body).mass[0] == pytest.approx(mass, abs=1e-9)


def test_moving_mass_agrees(simulated, robot):
    model, _ = simulated
    moving = sum(model.body_mass) - MASSES["base_link_inertia"]
    assert pin.computeTotalMass(robot.kinematics.model) == pytest.approx(moving, abs=1e-9)


def test_flange_follows_the_makers_chain(robot):
    flange = robot.kinematics.frame_id("wrist_3_link")
    model, data = robot.kinematics.model, robot.kinematics.data
    for q in configurations(20):
        expected = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, np.pi), np.zeros(3))  # base_link_inertia
        for (xyz, rpy), angle in zip(CHAIN, q, strict=True):
            expected = expected * pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array(xyz))
            expected = expected * pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, angle), np.zeros(3))
        pin.framesForwardKinematics(model, data, q)
        np.testing.assert_allclose(data.oMf[flange].homogeneous, expected.homogeneous, atol=1e-9)


def test_tip_agrees(simulated, robot):
    model, data = simulated
    for q in configurations(50):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        position, rotation = robot.forward(q)
        np.testing.assert_allclose(position, data.site("tool_tip").xpos, atol=1e-6)
        np.testing.assert_allclose(rotation, data.site("tool_tip").xmat.reshape(3, 3), atol=1e-6)


def test_gravity_torque_agrees(simulated, robot):
    model, data = simulated
    for q in configurations(50):
        data.qpos[:], data.qvel[:] = q, 0.0
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(robot.gravity_torque(q), data.qfrc_bias, atol=1e-6)


def test_inverse_dynamics_agrees(simulated, robot):
    model, data = simulated
    generator = np.random.default_rng(3)
    torque = np.zeros(6)
    for q in configurations(20):
        v, a = generator.uniform(-1.0, 1.0, (2, 6))
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        data.qacc[:] = a
        mujoco.mj_rne(model, data, 1, torque)  # without armature
        expected = torque + model.dof_armature * a
        np.testing.assert_allclose(robot.inverse_dynamics(q, v, a), expected, atol=1e-6)


def test_limits_agree(simulated, robot):
    model, _ = simulated
    for index, name in enumerate(robot.joint_names):
        joint = model.joint(name)
        assert tuple(joint.range) == (robot.lower[index], robot.upper[index])
        assert model.jnt_actfrcrange[joint.id, 1] == robot.effort_limit[index]


def test_tool_is_slim_and_its_tip_foremost(simulated):
    model, data = simulated
    mujoco.mj_kinematics(model, data)
    spindle = data.body("spindle")
    tip = spindle.xmat.reshape(3, 3).T @ (data.site("tool_tip").xpos - spindle.xpos)
    center = spindle.xmat.reshape(3, 3).T @ (data.site("tip_center").xpos - spindle.xpos)
    np.testing.assert_allclose(tip[:2], 0.0, atol=1e-9)  # on the axis of a spindle joint
    assert 0.12 <= tip[2] <= 0.16
    assert tip[2] - center[2] == pytest.approx(model.geom("tip_collision").size[0])


def test_acceleration_limits_stay_below_effort_limits(robot):
    """Stretched out, with gravity, one joint at a time."""
    still = np.zeros(6)
    for index in range(6):
        for wrist in np.linspace(-np.pi, np.pi, 9):
            q = np.array([0.0, 0.0, 0.0, wrist, -np.pi / 2, 0.0])
            for sign in (1.0, -1.0):
                a = np.zeros(6)
                a[index] = sign * robot.acceleration_limit[index]
                torque = robot.inverse_dynamics(q, still, a)[index]
                assert abs(torque) < 0.9 * robot.effort_limit[index]


def test_scene_can_include_it(tmp_path):
    scene = tmp_path / "scene.xml"
    scene.write_text(
        f'<mujoco model="scene"><include file="{MJCF}"/><worldbody>'
        '<geom name="table" type="plane" size="1 1 0.1"/></worldbody><sensor>'
        '<force site="wrench"/><torque site="wrench"/><accelerometer site="imu"/>'
        "</sensor></mujoco>"
    )
    model = mujoco.MjModel.from_xml_path(str(scene))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    assert model.nsensor == 3
    assert model.nv == 7  # with the spindle


def test_wrench_site_feels_the_tools_weight(robot):
    """At rest with the tool down, the force sensor reads the tool's weight along its own -z."""
    spec = robot_spec("ur5e")
    spec.add_sensor(
        name="force",
        type=mujoco.mjtSensor.mjSENS_FORCE,
        objtype=mujoco.mjtObj.mjOBJ_SITE,
        objname="wrench",
    )
    spec.option.gravity = [0.0, 0.0, -9.81]
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = robot.home
    data.qfrc_applied[:] = robot.gravity_torque(robot.home)
    mujoco.mj_forward(model, data)
    weight = (MASSES["tool"] + MASSES["spindle"]) * 9.81
    assert np.linalg.norm(data.sensordata) == pytest.approx(weight, rel=1e-3)
    assert abs(data.sensordata[2]) == pytest.approx(weight, rel=1e-3)
