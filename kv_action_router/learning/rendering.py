"""The simulated camera, with things and light of our own, and with the truth of each pixel."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import mujoco
import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.learning.surroundings import BOX, CAPSULE, CYLINDER, SPHERE, Light, Thing
from kv_action_router.simulation.camera import Camera, CameraModel, Snapshot
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.scene import CAMERA, camera_rotation

_KINDS = {
    BOX: mujoco.mjtGeom.mjGEOM_BOX,
    CYLINDER: mujoco.mjtGeom.mjGEOM_CYLINDER,
    SPHERE: mujoco.mjtGeom.mjGEOM_SPHERE,
    CAPSULE: mujoco.mjtGeom.mjGEOM_CAPSULE,
}
_SEGMENT, _BY_COLOR = mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR


class LabeledCamera(Camera):
    """Renders a scene with more in it than its model holds. Make, use and close it on one thread.

    Attributes:
        things: drawn beside what the model holds; set before :meth:`render`.
        light: in force; None = the model's own.
    """

    def __init__(
        self, model: mujoco.MjModel, config: SimulationConfig, shapes: Sequence[str]
    ) -> None:
        """Prepare; ``shapes`` are the names of the target's."""
        exact = dataclasses.replace(config, depth_noise=0.0, color_encoding="rgb8")
        super().__init__(model, exact, np.random.default_rng(0))
        self._config = exact
        self._shapes = [model.geom(name).id for name in shapes]
        self.things: Sequence[Thing] = ()
        self.light: Light | None = None

    def stand(self, position: FloatArray, orientation: FloatArray) -> None:
        """Move the camera: optical frame in the base frame [m] (3,), quaternion x, y, z, w (4,)."""
        moved = dataclasses.replace(
            self._config,
            camera_position=tuple(map(float, position)),
            camera_orientation=tuple(map(float, orientation)),
        )
        rotation = camera_rotation(moved) @ np.diag([1.0, -1.0, -1.0])
        camera = self._mujoco.camera(CAMERA)
        camera.pos[:] = position
        mujoco.mju_mat2Quat(camera.quat, rotation.ravel())
        self.model = CameraModel.of(moved)

    def target_pixels(self) -> npt.NDArray[np.bool_]:
        """Return which pixels show the target in what was rendered last (height, width)."""
        scene = self._scene
        scene.flags[_SEGMENT] = scene.flags[_BY_COLOR] = True
        self._draw()
        scene.flags[_SEGMENT] = scene.flags[_BY_COLOR] = False
        code = self._raw_color[::-1].astype(np.int32)
        number = code[..., 0] + (code[..., 1] << 8) + (code[..., 2] << 16) - 1
        own = [
            scene.geoms[i].segid
            for i in range(scene.ngeom)
            if scene.geoms[i].objtype == mujoco.mjtObj.mjOBJ_GEOM
            and scene.geoms[i].objid in self._shapes
        ]
        return np.isin(number, own)

    def _update(self, snapshot: Snapshot) -> None:
        super()._update(snapshot)
        scene = self._scene
        for thing in self.things:
            if scene.ngeom >= scene.maxgeom:
                break
            geom = scene.geoms[scene.ngeom]
            rgba = np.array([*thing.color, 1.0], np.float32)
            mujoco.mjv_initGeom(
                geom, _KINDS[thing.kind], thing.size, thing.position, _turned(thing), rgba
            )
            geom.segid = scene.ngeom
            scene.ngeom += 1
        if self.light is not None:
            _shine(scene, self.light)


def _turned(thing: Thing) -> FloatArray:
    """Return the rotation of a thing, row-major (9,): tilted about x, then turned about z."""
    about_z, about_x, both = np.empty(4), np.empty(4), np.empty(4)
    mujoco.mju_axisAngle2Quat(about_z, np.array([0.0, 0.0, 1.0]), thing.yaw)
    mujoco.mju_axisAngle2Quat(about_x, np.array([1.0, 0.0, 0.0]), thing.tilt)
    mujoco.mju_mulQuat(both, about_z, about_x)
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, both)
    return matrix


def _shine(scene: mujoco.MjvScene, light: Light) -> None:
    """Let the head light give what is everywhere, and the lamps what has a direction."""
    for i in range(scene.nlight):
        lamp = scene.lights[i]
        if lamp.headlight:
            lamp.ambient[:] = light.ambient * light.tint
            lamp.diffuse[:] = 0.3 * light.diffuse * light.tint
        else:
            lamp.diffuse[:] = light.diffuse * light.tint
            lamp.dir[:] = light.direction
