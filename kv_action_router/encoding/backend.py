"""What an encoder asks of its perception, whoever answers: color segmentation or a network."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import Float32Array, FloatArray, Sight, TargetEstimate
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.images import ColorImage, DepthImage
from kv_action_router.encoding.network.checkpoint import Checkpoint
from kv_action_router.encoding.network.perception import NetworkPerception
from kv_action_router.encoding.network.runner import open_networks
from kv_action_router.encoding.perception import Perception, TargetPerception
from kv_action_router.encoding.scene_slice import SceneEncoder
from kv_action_router.encoding.surface_check import SurfaceCheck
from kv_action_router.errors import InputError

SEGMENTATION = "segmentation"
SEGMENTATION_ID = "segmentation-1"  # changes with anything that changes what its keys mean


class PerceptionBackend(Protocol):
    """Looks at the images of one camera. One thread may use it."""

    def find(self, color: ColorImage, depth: DepthImage) -> Perception:
        """Return where the target is, or why there is no estimate.

        Args:
            color: 8-bit RGB (height, width, 3).
            depth: [m] (height, width); NaN, Inf or 0 = not measured.

        Raises:
            ImageError: an image's size is not the camera's.
        """

    def look_for(self, target: str) -> None:
        """Look for another of the configured targets from now on.

        Args:
            target: its name; empty = the first.

        Raises:
            InputError: it is not known here; what is looked for stays as it was.
        """

    def place_is_empty(self, target: TargetEstimate, depth: DepthImage) -> bool:
        """Return whether an earlier estimate's place is in plain view, without the target.

        Asked of the images that :meth:`find` saw last.
        """

    def scene(self, color: ColorImage, depth: DepthImage, robot: FloatArray | None) -> Float32Array:
        """Return the scene slice (24,) of the images that :meth:`find` saw last.

        Args:
            color: as above.
            depth: as above.
            robot: spheres x, y, z, r that cover the robot, base frame [m] (m, 4); None = unknown.
        """


class Perceiver:
    """Makes backends of the configured kind; what they share is loaded once.

    Attributes:
        encoder_id: of all keys that are made from what they see.
    """

    def __init__(self, config: EncoderConfig) -> None:
        """Load what is configured.

        Raises:
            CheckpointError: the checkpoint cannot be used.
            ConfigError: what computes the network is not installed.
        """
        self._config = config
        self._checkpoint: Checkpoint | None = None
        self.encoder_id = SEGMENTATION_ID
        if config.perception != SEGMENTATION:
            self._checkpoint = Checkpoint.load(config.checkpoint)
            self._networks = open_networks(config.perception, self._checkpoint)
            for network in self._networks.values():
                network.run()  # the first run costs more: memory is laid out
            self.encoder_id = self._checkpoint.encoder_id

    def of(self, camera: Camera) -> PerceptionBackend:
        """Return a backend for a camera; the one before must not be used any more."""
        config = self._config
        backend: PerceptionBackend
        if self._checkpoint is None:
            backend = SegmentationPerception(config, camera)
        else:
            numbers = self._checkpoint.numbers
            backend = NetworkPerception(config, camera, numbers, self._networks)
        return WatchedPerception(backend, SurfaceCheck(config, config, camera))


class WatchedPerception:
    """A perception whose estimates count only while the camera stands where its pose says.

    A target that it does not know is absent in every image, and the reason says so.
    """

    def __init__(self, backend: PerceptionBackend, surface: SurfaceCheck) -> None:
        self._backend = backend
        self._surface = surface
        self._unknown = ""  # why the target that is looked for is never seen
        self.place_is_empty = backend.place_is_empty
        self.scene = backend.scene

    def look_for(self, target: str) -> None:
        """Look for another target from now on, or for one that is never seen."""
        self._unknown = ""
        try:
            self._backend.look_for(target)
        except InputError as error:
            self._unknown = str(error)

    def find(self, color: ColorImage, depth: DepthImage) -> Perception:
        """Return where the target is, or why there is no estimate."""
        found = self._backend.find(color, depth)
        if found.sight is Sight.NO_DEPTH:
            return found
        if self._unknown:
            return replace(found, sight=Sight.ABSENT, target=None, reason=self._unknown)
        trouble = self._surface.trouble(depth)
        if not trouble:
            return found
        return replace(found, sight=Sight.CAMERA_MOVED, target=None, reason=trouble)


class SegmentationPerception:
    """Color segmentation, and a scene slice of fixed statistics: needs no weights."""

    def __init__(self, config: EncoderConfig, camera: Camera) -> None:
        self._hues = config.hues
        self._target = TargetPerception(config, camera)
        self._scene = SceneEncoder(camera)
        self._mask: npt.NDArray[np.uint8] = np.zeros(camera.shape, np.uint8)

    def find(self, color: ColorImage, depth: DepthImage) -> Perception:
        """Return where the target is, or why there is no estimate."""
        found = self._target.find(color, depth)
        self._mask = found.color_mask
        return found

    def look_for(self, target: str) -> None:
        """Look for another of the configured targets from now on.

        Raises:
            InputError: it is not known; what is looked for stays as it was.
        """
        try:
            self._target.look_for(self._hues[target])
        except KeyError:
            known = ", ".join(repr(name) for name in self._hues)
            raise InputError("target", f"one of {known} (other_targets)", target) from None

    def place_is_empty(self, target: TargetEstimate, depth: DepthImage) -> bool:
        """Return whether an earlier estimate's place is in plain view, without the target."""
        return self._target.place_is_empty(target, self._mask, depth)

    def scene(self, color: ColorImage, depth: DepthImage, robot: FloatArray | None) -> Float32Array:
        """Return the scene slice (24,)."""
        return self._scene.encode(color, depth, self._mask, robot)
