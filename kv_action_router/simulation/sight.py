"""Where an episode's image keys come from: rendered images, or the simulation's truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from kv_action_router.contracts import (
    SLICE_NORMS,
    Float32Array,
    ObstacleSpheres,
    Pose,
    TargetEstimate,
    TaskKey,
)
from kv_action_router.encoding.camera import Intrinsics
from kv_action_router.encoding.encoder import KeyEncoder, Origin
from kv_action_router.encoding.images import decode_depth
from kv_action_router.simulation.camera import Camera, CameraModel, Snapshot, to_millimeters
from kv_action_router.simulation.cell import CellPlant
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.plant import Plant
from kv_action_router.simulation.stopwatch import Stopwatch

_SCENE_SIZE = 24
_OBSTACLES_EVERY = 3  # images


class TargetSource(Protocol):
    """Answers each image that is due.

    Attributes:
        obstacles: seen last; None = none yet.
    """

    obstacles: ObstacleSpheres | None

    def look(
        self, encoder: KeyEncoder, plant: CellPlant, origin: Origin, times: Stopwatch
    ) -> TaskKey | None:
        """Return the key of an image taken now; None = the image holds nothing."""

    def close(self) -> None:
        """Free what was needed."""


class RenderedImages:
    """Renders what the camera sees and lets the encoder perceive it. Belongs to one thread."""

    def __init__(self, plant: Plant, config: SimulationConfig) -> None:
        """Open an off-screen renderer."""
        self.obstacles: ObstacleSpheres | None = None
        self._data = plant.data
        self._camera = Camera(plant.model, config, np.random.default_rng(config.seed + 1))
        view = CameraModel.of(config)
        self._intrinsics = Intrinsics.from_matrix(
            view.width, view.height, view.matrix.ravel().tolist(), []
        )
        self._millimeters = np.zeros((view.height, view.width), np.uint16)
        self._images = 0

    def look(
        self, encoder: KeyEncoder, plant: CellPlant, origin: Origin, times: Stopwatch
    ) -> TaskKey | None:
        """Render, send depth as a driver does, in whole millimeters, and encode."""
        camera = self._camera
        with times.measure("render"):
            camera.render(Snapshot.of(self._data, origin.stamp_ns))
            to_millimeters(camera.depth, self._millimeters)
        encoder.set_camera(self._intrinsics)
        height, width = self._millimeters.shape
        with times.measure("encode image"):
            depth = decode_depth(
                self._millimeters.data.cast("B"), "16UC1", height, width, 2 * width
            )
            key = encoder.on_image(camera.color, depth, origin, origin.receipt_ns)
        if key is not None and self._images % _OBSTACLES_EVERY == 0:
            with times.measure("obstacles"):
                self.obstacles = encoder.obstacles(depth, key)
        self._images += 1
        return key

    def close(self) -> None:
        """Free the renderer."""
        self._camera.close()


class TrueTarget:
    """Reports where the target really is, but for errors such as the rendered images lead to.

    Needs no renderer, so episodes run faster. It sees through the arm, sees no obstacles, and the
    scene looks the same until somebody sets it.

    Attributes:
        scene: slice of the key (24,), of norm sqrt(0.25).
    """

    def __init__(self, seed: int = 1, bias: float = 1.2e-4, noise: float = 3.0e-5) -> None:
        """Set the standard deviations along each axis.

        Args:
            seed: of both.
            bias: of an error that stays while the target does [m].
            noise: of an error of each image's own [m].
        """
        self.obstacles: ObstacleSpheres | None = None
        self._generator = np.random.default_rng(seed)
        self._deviation = (bias, noise)
        self._place = np.full(3, np.nan)
        self._bias = np.zeros(3)
        variance = bias**2 + noise**2
        self._covariance = np.diag([variance] * 3 + [0.05**2] * 2 + [np.pi**2 / 3.0])
        scene = self._generator.standard_normal(_SCENE_SIZE)
        scene *= SLICE_NORMS["scene"] / np.linalg.norm(scene)
        self.scene: Float32Array = scene.astype(np.float32)

    def look(
        self, encoder: KeyEncoder, plant: CellPlant, origin: Origin, times: Stopwatch
    ) -> TaskKey | None:
        """Return the key of a place near the true one."""
        bias, noise = self._deviation
        place = plant.place_of(encoder.target)
        if not np.array_equal(place, self._place):
            self._place = place
            self._bias = bias * self._generator.standard_normal(3)
        seen = place + self._bias + noise * self._generator.standard_normal(3)
        estimate = TargetEstimate(Pose(seen), self._covariance)
        with times.measure("encode truth"):
            return encoder.on_sight(estimate, self.scene, origin, origin.receipt_ns)

    def close(self) -> None:
        """Nothing is held."""


Sight = Callable[[Any, SimulationConfig], TargetSource]
"""Makes a source for a plant, of the kind that it can look at, and the configuration."""


def rendered_images(plant: Plant, config: SimulationConfig) -> TargetSource:
    """Let the encoder perceive rendered images."""
    return RenderedImages(plant, config)


def true_target(plant: CellPlant, config: SimulationConfig) -> TargetSource:  # noqa: ARG001 - a Sight
    """Let the encoder be told where the target is."""
    return TrueTarget(config.seed)
