"""The RGB-D camera: one pass of the software renderer gives color and depth of a copied state.

A camera lives on one thread: the GL context belongs to the thread that made it. MuJoCo lets go of
the GIL while it renders and reads pixels, so that thread does not hold up the physics.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import mujoco
import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import Float32Array, FloatArray
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.scene import CAMERA, camera_rotation

_NOISE_SIZE = 1 << 18
_OFF = (
    mujoco.mjtRndFlag.mjRND_SHADOW,
    mujoco.mjtRndFlag.mjRND_REFLECTION,
    mujoco.mjtRndFlag.mjRND_SKYBOX,
    mujoco.mjtRndFlag.mjRND_HAZE,
)


@dataclass(frozen=True)
class Snapshot:
    """State of the scene at one instant: copies that the physics does not touch any more.

    Attributes:
        qpos: joint positions [rad] (n,).
        mocap_pos: of movable things (m, 3) [m].
        mocap_quat: of movable things, w x y z (m, 4).
        stamp_ns: when it was, on the clock of the header stamps [ns].
    """

    qpos: FloatArray
    mocap_pos: FloatArray
    mocap_quat: FloatArray
    stamp_ns: int = 0

    @classmethod
    def of(cls, data: mujoco.MjData, stamp_ns: int = 0) -> Snapshot:
        """Copy the present state."""
        return cls(data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy(), stamp_ns)


@dataclass(frozen=True)
class CameraModel:
    """Pinhole camera without distortion; integer pixel coordinates are pixel centers.

    Attributes:
        width, height: [px].
        focal_length: [px], the same in x and y.
        position: of the optical frame in the base frame [m] (3,).
        rotation: of the optical frame (z forward, x right, y down) in the base frame (3, 3).
    """

    width: int
    height: int
    focal_length: float
    position: FloatArray
    rotation: FloatArray

    @classmethod
    def of(cls, config: SimulationConfig) -> CameraModel:
        """Return the camera that the configuration describes."""
        return cls(
            width=config.camera_width,
            height=config.camera_height,
            focal_length=config.camera_height / 2 / float(np.tan(config.camera_field_of_view / 2)),
            position=np.array(config.camera_position),
            rotation=camera_rotation(config),
        )

    @property
    def matrix(self) -> FloatArray:
        """Intrinsic matrix K (3, 3)."""
        f, cx, cy = self.focal_length, (self.width - 1) / 2, (self.height - 1) / 2
        return np.array([[f, 0.0, cx], [0.0, f, cy], [0.0, 0.0, 1.0]])

    def project(self, point: FloatArray) -> tuple[float, float, float]:
        """Return u, v [px] and depth [m] of a point in the base frame [m] (3,)."""
        x, y, z = (np.asarray(point) - self.position) @ self.rotation
        _, _, cx, _, _, cy, *_ = self.matrix.ravel()
        return self.focal_length * x / z + cx, self.focal_length * y / z + cy, float(z)


class Camera:
    """Renders snapshots. Make, use and close it on one thread.

    Invariant: :attr:`color` (h, w, 3) uint8 and :attr:`depth` (h, w) float32 [m], NaN where nothing
    is measured, are always of the same snapshot; the next :meth:`render` overwrites them.
    """

    def __init__(
        self, model: mujoco.MjModel, config: SimulationConfig, generator: np.random.Generator
    ) -> None:
        self.model = CameraModel.of(config)
        width, height = config.camera_width, config.camera_height
        self.color: npt.NDArray[np.uint8] = np.zeros((height, width, 3), np.uint8)
        self.depth: Float32Array = np.zeros((height, width), np.float32)
        self._raw_color = np.zeros((height, width, 3), np.uint8)
        self._raw_depth = np.zeros((height, width), np.float32)
        self._swap_channels = config.color_encoding == "bgr8"
        self._maximum = config.depth_maximum
        self._blur = config.camera_blur
        near = model.vis.map.znear * model.stat.extent
        far = model.vis.map.zfar * model.stat.extent
        self._reciprocal_offset = np.float32(1.0 / far)
        self._reciprocal_slope = np.float32(1.0 / near - 1.0 / far)
        self._generator = generator
        size = max(_NOISE_SIZE, 4 * width * height) if config.depth_noise > 0.0 else 0
        self._noise = (config.depth_noise * generator.standard_normal(size)).astype(np.float32)

        self._mujoco = model
        self._data = mujoco.MjData(model)
        self._context = mujoco.GLContext(width, height)
        self._context.make_current()
        self._scene = mujoco.MjvScene(model, maxgeom=200)
        for flag in _OFF:
            self._scene.flags[flag] = False
        self._renderer = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_50)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._renderer)
        self._renderer.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._rectangle = mujoco.MjrRect(0, 0, width, height)
        self._option = mujoco.MjvOption()
        self._view = mujoco.MjvCamera()
        self._view.type = mujoco.mjtCamera.mjCAMERA_FIXED
        self._view.fixedcamid = model.camera(CAMERA).id

    def render(self, snapshot: Snapshot) -> None:
        """Fill :attr:`color` and :attr:`depth` from a snapshot."""
        self._update(snapshot)
        self._draw()
        # OpenGL's first row is the lowest.
        self.color[:] = (
            self._raw_color[::-1, :, ::-1] if self._swap_channels else self._raw_color[::-1]
        )
        if self._blur > 0.0:
            cv2.GaussianBlur(self.color, (0, 0), self._blur, dst=self.color)
        self._to_meters()

    def _update(self, snapshot: Snapshot) -> None:
        """Bring what is drawn to a snapshot."""
        data = self._data
        data.qpos[:] = snapshot.qpos
        data.mocap_pos[:] = snapshot.mocap_pos
        data.mocap_quat[:] = snapshot.mocap_quat
        mujoco.mj_kinematics(self._mujoco, data)
        mujoco.mj_camlight(self._mujoco, data)
        mujoco.mjv_updateScene(
            self._mujoco,
            data,
            self._option,
            None,
            self._view,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )

    def _draw(self) -> None:
        """Draw, and read what was drawn."""
        self._context.make_current()
        mujoco.mjr_render(self._rectangle, self._scene, self._renderer)
        mujoco.mjr_readPixels(self._raw_color, self._raw_depth, self._rectangle, self._renderer)

    def _to_meters(self) -> None:
        # The reversed depth map is 1 at the near plane, 0 at the far one, and linear in 1 / depth.
        depth = self.depth
        np.multiply(self._raw_depth[::-1], self._reciprocal_slope, out=depth)
        depth += self._reciprocal_offset
        np.reciprocal(depth, out=depth)
        depth[depth > self._maximum] = np.nan
        if len(self._noise):
            start = int(self._generator.integers(len(self._noise) - depth.size))
            depth += self._noise[start : start + depth.size].reshape(depth.shape)

    def close(self) -> None:
        """Free the renderer and its context."""
        self._renderer.free()
        self._context.free()


def to_millimeters(depth: Float32Array, out: npt.NDArray[np.uint16]) -> None:
    """Write depth [m], NaN = not measured, as whole millimeters, 0 = not measured."""
    scaled = np.rint(depth * np.float32(1000.0))
    np.copyto(scaled, 0.0, where=~(scaled <= 65535.0))
    out[:] = scaled
