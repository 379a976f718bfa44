"""What is drawn at random: surfaces, light, things that lie about, and what stands in the way.

A *scene* is what stays while a robot works: surfaces, things on the table, the camera's place. A
*frame* is one look at it: target, arm, light and whatever hides the target change each time.
"""

from __future__ import annotations

import colorsys
import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from kv_action_router.contracts import FloatArray

BOX, CYLINDER, SPHERE, CAPSULE = "box", "cylinder", "sphere", "capsule"
_SHAPES = (BOX, BOX, CYLINDER, CYLINDER, SPHERE, CAPSULE)
_SAME_HUE = 40.0  # [deg] what has the target's shape keeps this far from its hue


class Decoy(IntEnum):
    """What a thing shares with the target, from which it is to be told; never both."""

    NONE = 0
    SHAPE = 1
    COLOR = 2


@dataclass(frozen=True, slots=True)
class Thing:
    """A body without physics: kind, half sizes [m] (3,), place [m] (3,), yaw, tilt [rad], color.

    ``decoy`` says what it shares with the target.
    """

    kind: str
    size: FloatArray
    position: FloatArray
    yaw: float
    tilt: float
    color: tuple[float, float, float]
    decoy: Decoy = Decoy.NONE


@dataclass(frozen=True, slots=True)
class Light:
    """Light of a frame: ambient and diffuse brightness, direction (3,), tint (3,)."""

    ambient: float
    diffuse: float
    direction: FloatArray
    tint: FloatArray


@dataclass(frozen=True, slots=True)
class Target:
    """What is known of the target while a scene is drawn: its size [m], and hue [deg]."""

    radius: float
    height: float
    hue: float


def color(generator: np.random.Generator, dull: bool = False) -> tuple[float, float, float]:
    """Return red, green and blue, 0 to 1; ``dull`` ones are like surfaces of work benches."""
    saturation = generator.uniform(0.0, 0.35 if dull else 1.0)
    return colorsys.hsv_to_rgb(generator.uniform(), saturation, generator.uniform(0.15, 0.95))


def away_from(generator: np.random.Generator, hue: float) -> tuple[float, float, float]:
    """Return a strong color that is not the target's."""
    other = hue + generator.uniform(_SAME_HUE, 360.0 - _SAME_HUE)
    saturation, value = generator.uniform(0.5, 1.0), generator.uniform(0.4, 1.0)
    return colorsys.hsv_to_rgb((other % 360.0) / 360.0, saturation, value)


def near_hue(generator: np.random.Generator, hue: float) -> tuple[float, float, float]:
    """Return a color of the target: hue within 8 degrees, more or less bright and strong."""
    own = (hue + generator.uniform(-8.0, 8.0)) % 360.0 / 360.0
    return colorsys.hsv_to_rgb(own, generator.uniform(0.75, 1.0), generator.uniform(0.55, 1.0))


def things(
    generator: np.random.Generator, target: Target, x: FloatArray, y: FloatArray
) -> list[Thing]:
    """Return what lies about on the table of a scene, decoys among it.

    Args:
        generator: of the randomness.
        target: that decoys look like.
        x: range of the table [m] (2,).
        y: range of the table [m] (2,).
    """
    found = []
    for _ in range(generator.integers(0, 9)):
        kind = str(generator.choice(_SHAPES))
        size = generator.uniform(0.004, 0.06, 3) * np.array([1.0, 1.0, generator.uniform(0.1, 1.0)])
        if kind == SPHERE:
            size[:] = size[0]
        found.append(_lying(generator, kind, size, color(generator), x, y))
    for _ in range(generator.integers(0, 3)):
        found.append(_decoy(generator, target, x, y))
    return found


def _decoy(generator: np.random.Generator, target: Target, x: FloatArray, y: FloatArray) -> Thing:
    half = target.height / 2.0
    # Most have its color: hues are turned besides, but shapes stay as they were rendered.
    if generator.uniform() < 0.35:
        size = np.array([target.radius, target.radius, half]) * generator.uniform(0.85, 1.15)
        paint = away_from(generator, target.hue)
        return _lying(generator, CYLINDER, size, paint, x, y, Decoy.SHAPE)
    own = near_hue(generator, target.hue)
    if generator.uniform() < 0.6:
        size = target.radius * generator.uniform(0.3, 1.2, 3) * np.array([1.0, 1.0, 0.5])
        return _lying(generator, BOX, size, own, x, y, Decoy.COLOR)
    scale = generator.choice((generator.uniform(0.25, 0.6), generator.uniform(1.6, 2.5)))
    size = np.array([scale * target.radius, scale * target.radius, half])
    return _lying(generator, CYLINDER, size, own, x, y, Decoy.COLOR)


def _lying(
    generator: np.random.Generator,
    kind: str,
    size: FloatArray,
    paint: tuple[float, float, float],
    x: FloatArray,
    y: FloatArray,
    decoy: Decoy = Decoy.NONE,
) -> Thing:
    tilt = 0.0
    height = size[2]
    if kind == SPHERE:
        height = size[0]
    elif kind == CAPSULE:
        tilt, height = math.pi / 2.0, size[0]
    place = np.array([generator.uniform(*x), generator.uniform(*y), height])
    return Thing(kind, size, place, generator.uniform(-math.pi, math.pi), tilt, paint, decoy)


def occluder(generator: np.random.Generator, target: FloatArray, eye: FloatArray) -> Thing:
    """Return something between the target [m] (3,) and the camera's eye [m] (3,)."""
    share = generator.uniform(0.06, 0.5)
    middle = target + share * (eye - target)
    reach = 0.03 * (1.0 - share)
    middle += np.array([*generator.uniform(-reach, reach, 2), generator.uniform(0.0, 0.01)])
    kind = str(generator.choice((BOX, CAPSULE, CYLINDER)))
    size = generator.uniform(0.004, 0.03, 3) * (1.0 - share)
    size[2] *= 2.0
    tilt = generator.uniform(0.0, math.pi)
    return Thing(
        kind, size, middle, generator.uniform(-math.pi, math.pi), tilt, color(generator, dull=True)
    )


def light(generator: np.random.Generator) -> Light:
    """Return the light of a frame: dim to bright, from anywhere above, a little colored."""
    direction = np.array([*generator.uniform(-0.8, 0.8, 2), -1.0])
    return Light(
        ambient=generator.uniform(0.15, 0.5),
        diffuse=generator.uniform(0.2, 0.75),
        direction=direction / np.linalg.norm(direction),
        tint=1.0 + generator.uniform(-0.12, 0.12, 3),
    )
