"""How sharp an image is around the target: is what the camera shows good enough to be judged?

The measure is the variance of the Laplacian (Pech-Pacheco et al., "Diatom autofocusing in
brightfield microscopy: a comparative study", ICPR 2000), over the variance of the brightness in the
same window: twice the light doubles neither. It falls as soon as edges are wider than a pixel.
"""

from __future__ import annotations

import math

import cv2
import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray, TargetEstimate
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.images import ColorImage

_AROUND = 1.3  # half the window's edge over the target's radius
_LEAST = 5  # [px] edge of a window
_FLAT = 1.0  # variance of a window in which nothing is to be seen [gray levels^2]


def sharpness(gray: npt.NDArray[np.uint8]) -> float:
    """Return the measure of a window (h, w); NaN where it is too small or shows nothing."""
    if min(gray.shape) < _LEAST:
        return math.nan
    variance = float(gray.var())
    if variance < _FLAT:
        return math.nan
    edges = cv2.Laplacian(gray, cv2.CV_32F)[1:-1, 1:-1]  # the rim is made up
    return float(edges.var()) / variance


class SharpnessMeter:
    """Measures around the target in each image, while somebody asks for it.

    Attributes:
        camera: that took the images; None = not known yet.
        value: of the newest image; NaN = nobody asks, or the target is not in it.
    """

    def __init__(self, radius: float) -> None:
        """Prepare for a target of a radius [m]."""
        self.camera: Camera | None = None
        self.value = math.nan
        self._radius = radius
        self._asked = False

    def ask(self, *, wanted: bool) -> None:
        """Measure from now on, or no longer."""
        self._asked = wanted
        if not wanted:
            self.value = math.nan

    def look(self, color: ColorImage, target: TargetEstimate | None) -> None:
        """Take an image (height, width, 3), and the target that was seen in it."""
        if self._asked:
            self.value = math.nan if target is None else self._measure(color, target.pose.position)

    def _measure(self, color: ColorImage, position: FloatArray) -> float:
        camera = self.camera
        depth = 0.0 if camera is None else camera.depth_of(position)
        if camera is None or depth <= 0.0:
            return math.nan
        column, row = camera.project(position[None, :])[0]
        half = max(_LEAST // 2, round(_AROUND * self._radius * camera.focal_length / depth))
        rows, columns = (
            slice(max(0, middle - half), max(0, middle + half + 1))
            for middle in (round(row), round(column))
        )
        window = color[rows, columns]
        if window.size == 0:
            return math.nan
        return sharpness(np.asarray(cv2.cvtColor(window, cv2.COLOR_RGB2GRAY), dtype=np.uint8))
