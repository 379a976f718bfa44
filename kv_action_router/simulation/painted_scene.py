"""Scene slices without a renderer: of a painted picture of a work-piece on its pallet.

The scene encoder looks at a coarse grid only, so that a small picture serves.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from kv_action_router.contracts import Float32Array, FloatArray
from kv_action_router.encoding.camera import Camera, Intrinsics
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.scene_slice import SceneEncoder
from kv_action_router.encoding.synthetic import disc_on_table
from kv_action_router.simulation.camera import CameraModel
from kv_action_router.simulation.config import SimulationConfig

_WIDTH, _HEIGHT = 80, 60  # [px]
_PIXEL_NOISE = 4.0  # standard deviation of a color value, 0 to 255


class PaintedScene:
    """Computes a picture ray by ray and lets the encoder describe it. One thread may use it."""

    def __init__(self, encoding: EncoderConfig, simulation: SimulationConfig) -> None:
        """Look from where the simulated camera stands."""
        small = dataclasses.replace(simulation, camera_width=_WIDTH, camera_height=_HEIGHT)
        view = CameraModel.of(small)
        intrinsics = Intrinsics.from_matrix(
            view.width, view.height, view.matrix.ravel().tolist(), []
        )
        self._camera = Camera(intrinsics, encoding.camera_position, encoding.camera_orientation)
        self._encoder = SceneEncoder(self._camera)
        self._size = (simulation.target_radius, simulation.target_height)
        self._depth_noise = simulation.depth_noise
        self._generator = np.random.default_rng(simulation.seed + 1)

    def slice(self, target: FloatArray, tint: FloatArray) -> Float32Array:
        """Return the scene slice (24,).

        Args:
            target: center of the work-piece's top face, base frame [m] (3,).
            tint: share of red, green and blue of the whole picture (3,).
        """
        color, depth = disc_on_table(self._camera, target, *self._size)
        corner = color[-1, 0]  # the surface that the piece lies on fills the picture's lower edge
        piece = (color != corner).any(axis=2).astype(np.uint8)
        noise = _PIXEL_NOISE * self._generator.standard_normal(color.shape, np.float32)
        seen = np.clip(color * tint + noise, 0, 255).astype(np.uint8)
        depth += self._depth_noise * self._generator.standard_normal(depth.shape, np.float32)
        return self._encoder.encode(seen, depth, piece).copy()
