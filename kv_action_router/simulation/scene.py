"""The physical model: the robot from its one MJCF, a table, a target, a box and a camera on a mast.

Rendering has no GPU to count on: shadows, reflections, multisampling and sky are off, since they
multiply the cost of an image by ten. Everything stands in the robot's base frame, with the table's
top at z = 0.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import RobotModelError
from kv_action_router.robots.description import load_description
from kv_action_router.simulation.box import add_box
from kv_action_router.simulation.clutter import add_clutter
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.connector import ConnectorConfig, add_connector
from kv_action_router.simulation.latch import SocketConfig
from kv_action_router.simulation.screw import ScrewConfig, add_screw

TARGET_BODY = "target"
TARGET_GEOM = "target_disc"
CAMERA = "camera"
TIP_SITE = "tool_tip"
WRENCH_SITE = "wrench"
IMU_SITE = "imu"
TARGET_COLOR = (0.90, 0.05, 0.75, 1.0)

_TABLE_HALF_SIZE = (0.55, 0.55, 0.02)  # [m]
_TABLE_CENTER = (0.40, 0.0, -0.02)  # [m]
_NEAR, _FAR = 0.02, 5.0  # clipping planes of the camera [m]

# Contact with the table: two of the longest steps is the stiffest that MuJoCo takes. The target is
# padded like a rubber foot, 7 N/mm, so that a touch at 0.035 m/s stays below 30 N even under the
# stiff loops of velocity and position drives. An impedance that is the same at any depth keeps it
# linear; whatever touches the target, it alone decides how that feels (priority), or the two would
# be averaged.
_CONTACT_SOLREF = (0.004, 1.0)
_TARGET_SOLREF = (0.030, 1.0)
_TARGET_SOLIMP = (0.6, 0.6, 0.001, 0.5, 2.0)


def build_scene(config: SimulationConfig) -> mujoco.MjModel:
    """Return the compiled model of robot and scene.

    Raises:
        RobotModelError: no such robot, or its MJCF lacks a site that a sensor sits on.
    """
    spec = robot_spec(config.robot)
    spec.option.timestep = config.step
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.stat.extent = 1.0  # clipping planes are given in units of it
    spec.visual.map.znear = _NEAR
    spec.visual.map.zfar = _FAR
    spec.visual.global_.offwidth = config.camera_width
    spec.visual.global_.offheight = config.camera_height
    spec.visual.quality.offsamples = 0
    spec.visual.quality.shadowsize = 0
    spec.visual.quality.numslices = 20
    spec.visual.quality.numstacks = 8
    _add_surroundings(spec)
    disc = _disc(config)
    _add_target(spec, config, disc)
    add_box(spec)
    if config.has_screw:
        add_screw(spec, ScrewConfig())
    if config.has_connector:
        add_connector(spec, ConnectorConfig(), SocketConfig(), disc)
    add_clutter(spec, config.distractors)
    _add_camera(spec, config)
    _add_sensors(spec)
    model: mujoco.MjModel = spec.compile()
    return model


def robot_spec(name: str) -> mujoco.MjSpec:
    """Return the robot alone, as its description says: joints that it fixes are left out.

    Raises:
        RobotModelError: no such robot, or its MJCF lacks a site that a sensor sits on.
    """
    description = load_description(name)
    spec = mujoco.MjSpec.from_file(str(description.mjcf))
    for joint in description.fixed:
        spec.delete(spec.joint(joint))
    for site in (TIP_SITE, WRENCH_SITE, IMU_SITE):
        if spec.site(site) is None:
            raise RobotModelError(f"{description.mjcf}: site {site!r} is missing")
    return spec


def _add_surroundings(spec: mujoco.MjSpec) -> None:
    spec.visual.headlight.ambient = [0.35, 0.35, 0.35]
    spec.visual.headlight.diffuse = [0.25, 0.25, 0.25]
    spec.visual.headlight.specular = [0.0, 0.0, 0.0]
    world = spec.worldbody
    world.add_light(
        name="lamp",
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=[0.4, 0.3, 2.0],
        dir=[0.1, -0.2, -1.0],
        diffuse=[0.45, 0.45, 0.45],
        specular=[0.05, 0.05, 0.05],
        castshadow=False,
    )
    world.add_geom(
        name="table",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=_TABLE_HALF_SIZE,
        pos=_TABLE_CENTER,
        rgba=[0.62, 0.55, 0.45, 1.0],
        solref=_CONTACT_SOLREF,
    )
    world.add_geom(
        name="mat",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=[0.16, 0.20, 0.001],
        pos=[0.46, 0.0, -0.0008],
        rgba=[0.52, 0.58, 0.56, 1.0],
        contype=0,
        conaffinity=0,
    )


def _disc(config: SimulationConfig) -> dict[str, Any]:
    """Return what the geom of a disc to work on is like, but for name and color."""
    half_height = config.target_height / 2
    return {
        "type": mujoco.mjtGeom.mjGEOM_CYLINDER,
        "size": [config.target_radius, half_height, 0.0],
        "pos": [0.0, 0.0, -half_height],
        "solref": _TARGET_SOLREF,
        "solimp": _TARGET_SOLIMP,
        "priority": 1,
    }


def _add_target(spec: mujoco.MjSpec, config: SimulationConfig, disc: dict[str, Any]) -> None:
    # A mocap body: it moves at a command only, and stands like a rock when it is touched. Its frame
    # is the center of the disc's top face.
    target = spec.worldbody.add_body(
        name=TARGET_BODY, mocap=True, pos=[*config.target_start, config.target_height]
    )
    target.add_geom(name=TARGET_GEOM, rgba=TARGET_COLOR, **disc)


def _add_camera(spec: mujoco.MjSpec, config: SimulationConfig) -> None:
    rotation = camera_rotation(config)
    position = np.array(config.camera_position) + config.camera_error
    # MuJoCo's cameras look along -z with y up; an optical frame looks along z with y down.
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, (rotation @ np.diag([1.0, -1.0, -1.0])).ravel())
    spec.worldbody.add_camera(
        name=CAMERA,
        pos=position,
        quat=quaternion,
        fovy=float(np.degrees(config.camera_field_of_view)),
        resolution=[config.camera_width, config.camera_height],
    )
    # The housing stands behind the lens, out of the picture; the mast behind the housing.
    housing = position - 0.03 * rotation[:, 2]
    mast = housing - 0.03 * rotation[:, 2]
    spec.worldbody.add_geom(
        name="camera_housing",
        type=mujoco.mjtGeom.mjGEOM_BOX,
        size=[0.045, 0.0125, 0.0125],
        pos=housing,
        quat=quaternion,
        rgba=[0.15, 0.15, 0.16, 1.0],
    )
    spec.worldbody.add_geom(
        name="camera_mast",
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        size=[0.012, 0.0, 0.0],
        fromto=[mast[0], mast[1], 0.0, mast[0], mast[1], mast[2]],
        rgba=[0.3, 0.3, 0.32, 1.0],
    )


def _add_sensors(spec: mujoco.MjSpec) -> None:
    site = mujoco.mjtObj.mjOBJ_SITE
    for name, kind, where in (
        ("force", mujoco.mjtSensor.mjSENS_FORCE, WRENCH_SITE),
        ("torque", mujoco.mjtSensor.mjSENS_TORQUE, WRENCH_SITE),
        ("acceleration", mujoco.mjtSensor.mjSENS_ACCELEROMETER, IMU_SITE),
        ("angular_velocity", mujoco.mjtSensor.mjSENS_GYRO, IMU_SITE),
        ("orientation", mujoco.mjtSensor.mjSENS_FRAMEQUAT, IMU_SITE),
    ):
        spec.add_sensor(name=name, type=kind, objtype=site, objname=where)


def camera_rotation(config: SimulationConfig) -> FloatArray:
    """Return the rotation of the camera's optical frame in the base frame (3, 3)."""
    x, y, z, w = config.camera_orientation
    quaternion = np.array([w, x, y, z])
    mujoco.mju_normalize4(quaternion)
    rotation = np.empty(9)
    mujoco.mju_quat2Mat(rotation, quaternion)
    return rotation.reshape(3, 3)
