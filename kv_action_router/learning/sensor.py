"""What a real RGB-D camera does to a rendered picture: all of it at random."""

from __future__ import annotations

import cv2
import numpy as np

from kv_action_router.contracts import Float32Array
from kv_action_router.encoding.images import ColorImage, DepthImage


def worsen_color(generator: np.random.Generator, image: ColorImage) -> ColorImage:
    """Return the image with exposure, gamma, uneven light, blur and noise."""
    rows, columns = image.shape[:2]
    seen: Float32Array = image.astype(np.float32) / 255.0
    coarse = 1.0 + 0.15 * generator.standard_normal((4, 5)).astype(np.float32)
    seen *= cv2.resize(coarse, (columns, rows), interpolation=cv2.INTER_CUBIC)[..., None]
    seen *= np.float32(generator.uniform(0.65, 1.3))
    np.clip(seen, 0.0, 1.0, out=seen)
    np.power(seen, np.float32(generator.uniform(0.75, 1.3)), out=seen)
    if generator.uniform() < 0.5:
        cv2.GaussianBlur(seen, (0, 0), generator.uniform(0.3, 0.9), dst=seen)
    deviation = np.float32(generator.uniform(0.0, 0.025))
    seen += deviation * generator.standard_normal(seen.shape, np.float32)
    return np.clip(255.0 * seen, 0.0, 255.0).astype(np.uint8)


def worsen_depth(generator: np.random.Generator, depth: DepthImage) -> DepthImage:
    """Return depth [m] with noise, whole millimeters, edges and patches that are not measured."""
    seen = depth.copy()
    deviation = np.float32(generator.uniform(0.0003, 0.0018))
    seen += deviation * generator.standard_normal(seen.shape, np.float32)
    seen = np.rint(seen * 1000.0).astype(np.float32) / 1000.0
    if generator.uniform() < 0.4:  # edges scatter
        steps = cv2.morphologyEx(depth, cv2.MORPH_GRADIENT, np.ones((3, 3), np.uint8)) > 0.01
        seen[steps & (generator.uniform(size=seen.shape) < generator.uniform())] = np.nan
    if generator.uniform() < 0.5:
        seen[_patches(generator, seen.shape, generator.uniform(0.02, 0.35))] = np.nan
    if generator.uniform() < 0.3:
        seen[generator.uniform(size=seen.shape) < generator.uniform(0.0, 0.3)] = np.nan
    return seen


def as_sent(generator: np.random.Generator, depth: DepthImage, deviation: float) -> DepthImage:
    """Return depth [m] as the simulated driver sends it: noise, then whole millimeters."""
    noise = deviation * generator.standard_normal(depth.shape)
    return (np.rint((depth + noise) * 1000.0) / 1000.0).astype(np.float32)


def _patches(
    generator: np.random.Generator, shape: tuple[int, ...], share: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    coarse = generator.uniform(size=(shape[0] // 8, shape[1] // 8)).astype(np.float32)
    smooth = cv2.resize(coarse, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC)
    return smooth < np.quantile(smooth[::4, ::4], share)
