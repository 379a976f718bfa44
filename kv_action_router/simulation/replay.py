"""Shows again what the arm did: pictures from joint positions that were measured in a run.

Nothing is simulated, so nothing of it can disturb a run: it is asked for afterwards. The scene is
the run's own, light and clutter included, since both come from the same seed and placements.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import TracebackType

import mujoco
import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.plant import Plant
from kv_action_router.simulation.screw import ScrewConfig

WIDTH, HEIGHT = 480, 360  # [px]
_FINER = 2  # rendered larger and averaged: smooth edges, against a background of our own
_AZIMUTH, _ELEVATION = 130.0, -22.0  # of the view [deg]
_NEAREST, _FARTHEST, _ZOOM = 0.14, 1.35, 5.5  # of the eye from what it looks at [m], [m], [m/m]
_LIFT = 0.20  # of what is looked at, from afar: there is more above than below [m]
_LIGHT = (-0.15, 0.75, -1.0)  # from behind the eye: shadows fall away from it
_LIT = (0.45, 0.0, 0.0)  # middle of what is lit [m]
_AMBIENT, _DIFFUSE = 0.5, 1.1  # over the lamp's own
_ABOVE, _BELOW = (203, 214, 224), (236, 240, 243)  # background, RGB
_ENGAGED = 0.005  # [m] from a screw's axis within which a tip may be in it


class Replay:
    """The scene of a run, and an eye beside it. Make, use and close it on one thread."""

    def __init__(
        self,
        config: SimulationConfig,
        placements: Sequence[tuple[float, float, float]] = (),
    ) -> None:
        """Build the scene as it was.

        Args:
            config: that the run was simulated with.
            placements: x, y [m] and yaw [rad] of each placement of the target so far, in order.
        """
        robot = RobotModel.load(config.robot)
        larger = dataclasses.replace(
            config, camera_width=_FINER * WIDTH, camera_height=_FINER * HEIGHT
        )
        self._prefix = config.joint_prefix
        self._plant = plant = Plant(larger, robot.home, robot.velocity_limit)
        for x, y, yaw in placements:
            plant.place_target(x, y, yaw)
        self._model, self._data = plant.model, plant.data
        self._recess = ScrewConfig().recess_depth
        self._screw = -1
        if plant.screw is not None:
            self._screw = int(self._model.body_mocapid[self._model.body("screw").id])
        self._context: mujoco.GLContext | None = None

    def __enter__(self) -> Replay:
        """Return this."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Free the renderer."""
        if self._context is not None:
            self._renderer.free()
            self._context.free()
            self._context = None

    def pose(self, joints: Sequence[str], position: FloatArray) -> FloatArray:
        """Put the arm where it was measured; return the tip, base frame [m] (3,).

        A screw that the tip is in goes down with it. Poses are to be shown in the order in which
        they were.

        Args:
            joints: names, in any order.
            position: of each [rad] (n,).

        Raises:
            InputError: a joint is unknown, or a position is missing or not finite.
        """
        if len(joints) != len(position) or not np.all(np.isfinite(position)):
            raise InputError("position", f"{len(joints)} finite numbers", position)
        for name, value in zip(joints, position, strict=True):
            own = name.removeprefix(self._prefix)
            number = mujoco.mj_name2id(self._model, mujoco.mjtObj.mjOBJ_JOINT, own)
            if number < 0:
                known = ", ".join(self._plant.drives.names)
                raise InputError("joints", f"among {known}", name)
            self._data.qpos[self._model.jnt_qposadr[number]] = value
        mujoco.mj_kinematics(self._model, self._data)
        tip = self._plant.tip
        if self._screw >= 0:
            head = self._data.mocap_pos[self._screw]
            if np.hypot(*(tip[:2] - head[:2])) < _ENGAGED:
                head[2] = min(head[2], tip[2] + self._recess)
        return tip

    def picture(self) -> npt.NDArray[np.uint8]:
        """Render the scene as it stands (h, w, 3), RGB; the nearer the tip, the nearer the eye."""
        if self._context is None:
            self._make_renderer()
        model, data = self._model, self._data
        mujoco.mj_kinematics(model, data)
        mujoco.mj_camlight(model, data)
        tip, target = self._plant.tip, self._plant.target
        away = float(np.linalg.norm(tip - target))
        self._view.lookat[:] = (tip + target) / 2 + (0.0, 0.0, _LIFT * min(1.0, 4.0 * away))
        self._view.distance = float(min(_NEAREST + _ZOOM * away, _FARTHEST))
        self._context.make_current()  # type: ignore[union-attr]
        mujoco.mjv_updateScene(
            model,
            data,
            self._option,
            None,
            self._view,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        mujoco.mjr_render(self._rectangle, self._scene, self._renderer)
        pixels = np.zeros((_FINER * HEIGHT, _FINER * WIDTH, 3), np.uint8)
        depth = np.zeros(pixels.shape[:2], np.float32)
        mujoco.mjr_readPixels(pixels, depth, self._rectangle, self._renderer)
        pixels = np.where(depth[..., None] == 1.0, self._background, pixels)[::-1]
        fine = pixels.reshape(HEIGHT, _FINER, WIDTH, _FINER, 3)
        return np.rint(fine.mean(axis=(1, 3))).astype(np.uint8)

    def _make_renderer(self) -> None:
        model = self._model
        # Nobody waits for these pictures: shadows and round shapes, unlike the camera's images.
        model.vis.quality.shadowsize = 4096
        model.vis.quality.numslices = 48
        model.vis.quality.numstacks = 24
        model.vis.headlight.ambient[:] = _AMBIENT
        model.light_castshadow[:] = True
        direction = np.array(_LIGHT) / np.linalg.norm(_LIGHT)
        model.light_dir[:] = direction
        model.light_pos[:] = np.array(_LIT) - 2.0 * direction
        model.light_diffuse[:] *= _DIFFUSE
        self._context = mujoco.GLContext(_FINER * WIDTH, _FINER * HEIGHT)
        self._context.make_current()
        self._scene = mujoco.MjvScene(model, maxgeom=400)
        self._renderer = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._renderer)
        self._rectangle = mujoco.MjrRect(0, 0, _FINER * WIDTH, _FINER * HEIGHT)
        share = np.linspace(0.0, 1.0, _FINER * HEIGHT)[:, None, None]  # OpenGL's first row is below
        self._background = share * np.array(_ABOVE) + (1.0 - share) * np.array(_BELOW)
        self._option = mujoco.MjvOption()
        self._view = mujoco.MjvCamera()
        self._view.azimuth, self._view.elevation = _AZIMUTH, _ELEVATION
