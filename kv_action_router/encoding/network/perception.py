"""Where the target is, by two networks, and how certain that is.

1. The overview's map names at most two likely places.
2. A cut-out around each, of fixed metric size: is it the target, where is the center to a fraction
   of a pixel, which pixels are its face?
3. The face's pixels with depth say how high it lies and how its axis leans; the ray through the
   center is cut with that plane. What hides a part of the face is not of the face.
4. The networks' own standard deviations, scaled to be right on held-out frames, become a
   covariance; past a limit there is no estimate. Never a guess.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from kv_action_router.contracts import (
    SLICE_NORMS,
    Float32Array,
    FloatArray,
    Pose,
    Sight,
    TargetEstimate,
)
from kv_action_router.encoding.camera import Camera
from kv_action_router.encoding.face_axis import fit_slopes, orientation
from kv_action_router.encoding.images import ColorImage, DepthImage
from kv_action_router.encoding.network import layout
from kv_action_router.encoding.network.checkpoint import Numbers
from kv_action_router.encoding.network.pictures import (
    Cutout,
    Cutter,
    Overview,
    likely_places,
    write_closeup,
    write_overview,
)
from kv_action_router.encoding.network.runner import Network
from kv_action_router.encoding.perception import Perception
from kv_action_router.encoding.perception_config import TargetConfig
from kv_action_router.encoding.plain_view import window_in_plain_view
from kv_action_router.errors import InputError

_PLACES = 2  # that are looked at closely
_FACE = 0.8  # probability above which a pixel is the face's: not a piece of its wall
_FACE_PIXELS = 60  # of the face with depth that an estimate needs: a fifth of what a whole face has
_FACE_SPREAD = 0.004  # [m] heights farther from their median are no face's
_HEIGHT_DEVIATION = 0.0007  # [m] systematic part of the height
_TILT_MAXIMUM = 0.2  # [rad] what leans more does not lie on anything level
_UNIFORM = math.pi**2 / 3.0  # variance of a heading of which nothing is known [rad^2]
_EMPTY = 0.5  # of the least likelihood: a place below it shows no target


class NetworkPerception:
    """Sees one kind of target in images of one camera. One thread may use it."""

    def __init__(
        self,
        config: TargetConfig,
        camera: Camera,
        numbers: Numbers,
        networks: Mapping[str, Network],
    ) -> None:
        self._config = config
        self._camera = camera
        self._numbers = numbers
        limits = config.depth_minimum, config.depth_maximum
        self._overview = Overview(camera, limits)
        self._cutter = Cutter(camera, numbers.window, layout.CLOSEUP, limits)
        self._look, self._closeup = networks["overview"], networks["closeup"]
        self._likely = self._look.outputs["likely"][0, 0]
        self._described = self._look.outputs["scene"][0]

    def find(self, color: ColorImage, depth: DepthImage) -> Perception:
        """Return where the target is, or why there is no estimate.

        Raises:
            ImageError: an image's size is not the camera's.
        """
        self._camera.check_size(color.shape, "color")
        self._camera.check_size(depth.shape, "depth")
        overview = self._overview
        if not overview.take(color, depth):
            return Perception(Sight.NO_DEPTH, None, reason="the depth image has no valid point")
        write_overview(overview.color, overview.heights, self._look.input[0])
        self._look.run()
        places = likely_places(self._likely, self._numbers.likely_minimum, _PLACES)
        if not places:
            score = float(self._likely.max())
            limit = self._numbers.likely_minimum
            reason = f"nothing in view is like the target ({score:.2f}, {limit:.2f} is needed)"
            return Perception(Sight.ABSENT, None, reason=reason)
        refused = []
        for row, column, _ in places:
            found = self._look_closely(color, depth, overview.pixel(row, column))
            if isinstance(found, TargetEstimate):
                return Perception(Sight.SEEN, found)
            refused.append(found)
        return Perception(Sight.HIDDEN, None, reason=refused[0])

    def look_for(self, target: str) -> None:
        """Take which target is looked for.

        Raises:
            InputError: it is another than the one that the network was trained on.
        """
        if target:
            raise InputError("target", "the one that the network was trained on (empty)", target)

    def place_is_empty(self, target: TargetEstimate, depth: DepthImage) -> bool:
        """Return whether an earlier estimate's place is in plain view, without the target."""
        if window_in_plain_view(target, depth, self._camera, self._config) is None:
            return False
        pixel = self._camera.project(target.pose.position[None, :])[0]
        row, column = (round(value) for value in self._overview.cell(*pixel.tolist()))
        around = self._likely[max(0, row - 1) : row + 2, max(0, column - 1) : column + 2]
        return around.size > 0 and float(around.max()) < _EMPTY * self._numbers.likely_minimum

    def scene(
        self,
        color: ColorImage,
        depth: DepthImage,
        robot: FloatArray | None,
    ) -> Float32Array:
        """Return the scene slice (24,), as the overview described it; it has norm sqrt(0.25)."""
        # the network's norm is 1 but for rounding and the epsilon that keeps it from dividing by 0
        norm = math.sqrt(float(self._described @ self._described))
        scaled: Float32Array = self._described * np.float32(SLICE_NORMS["scene"] / norm)
        return scaled

    def _look_closely(
        self, color: ColorImage, depth: DepthImage, pixel: tuple[float, float]
    ) -> TargetEstimate | str:
        """Return the target's estimate from a likely place, or why there is none."""
        level = self._overview.level(pixel)
        if level is None:
            return "no depth around what looks like the target"
        cut = self._cutter.cut(color, depth, pixel, level)
        if cut is None:
            return "what looks like the target does not lie below the camera"
        write_closeup(cut.color, cut.heights, self._numbers.window, self._closeup.input[0])
        self._closeup.run()
        outputs = self._closeup.outputs
        answers = outputs["answers"][0].tolist()
        present = 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, answers[layout.PRESENT]))))
        if not present >= self._numbers.present_minimum:
            limit = self._numbers.present_minimum
            return f"what looks like the target is not ({present:.2f}, {limit:.2f} is needed)"
        face = face_points(outputs["face"][0, 0], cut)
        if len(face) < _FACE_PIXELS:
            return f"{len(face)} pixels of the face have depth, {_FACE_PIXELS} are needed"
        place = outputs["place"][0].tolist()
        return self._estimate(cut, face, place, answers)

    def _estimate(
        self, cut: Cutout, face: FloatArray, place: list[float], answers: list[float]
    ) -> TargetEstimate | str:
        numbers, camera = self._numbers, self._camera
        count = len(face)
        u = cut.pixel[0] + place[0] * cut.width
        v = cut.pixel[1] + place[1] * cut.width
        middle = face.mean(axis=0)
        height = cut.level + float(middle[2])
        center, to_pixels, to_height = camera.meet_level(u, v, height)
        # the level plane's points from the pixels': straight lines, as the face is small
        face -= middle
        face[:, :2] = face[:, :2] @ to_pixels[:2].T
        (xx, xy, xh), (_, yy, yh), (_, _, hh) = (face.T @ face).tolist()
        sight = float(to_height[0]), float(to_height[1])
        slopes = fit_slopes((xx, xy, yy), (xh, yh), hh / count, count, sight)
        if not slopes.tilt <= _TILT_MAXIMUM:
            tilt, most = math.degrees(slopes.tilt), math.degrees(_TILT_MAXIMUM)
            return f"the face is tilted by {tilt:.0f} degrees, {most:.0f} at most are known"
        # from the points' mean to the center along the plane, and along the ray to that height
        way = to_pixels[:2] @ (np.array((u, v)) - middle[:2])
        rise = slopes.x * float(way[0]) + slopes.y * float(way[1])
        rise /= 1.0 - slopes.x * sight[0] - slopes.y * sight[1]
        center += rise * to_height
        spread = math.sqrt(hh) / count
        deviation = [
            math.exp(value) * numbers.place_scale * cut.width for value in answers[layout.SPREAD]
        ]
        covariance = np.zeros((6, 6))
        of_pixels = to_pixels * np.array(deviation)
        xx, xy, yy = slopes.covariance
        along = xx * way[0] * way[0] + 2.0 * xy * way[0] * way[1] + yy * way[1] * way[1]
        variance = spread**2 + along + _HEIGHT_DEVIATION**2
        covariance[:3, :3] = of_pixels @ of_pixels.T + variance * np.outer(to_height, to_height)
        worst = math.sqrt(float(np.linalg.eigvalsh(covariance[:2, :2])[-1]))
        if not worst <= self._config.target_deviation_maximum:  # NaN is refused, too
            return f"what is visible fixes the center to {1e3 * worst:.1f} mm only"
        slopes.write(covariance)
        yaw, covariance[5, 5] = self._heading(center, answers)
        turned = orientation(slopes.x, slopes.y, yaw)
        return TargetEstimate(Pose(center, turned), covariance)

    def _heading(self, center: FloatArray, answers: list[float]) -> tuple[float, float]:
        """Return yaw [rad], the turn nearest to zero of those that look the same; its variance."""
        fold = self._numbers.fold
        if not fold:
            return 0.0, _UNIFORM
        sine, cosine = answers[layout.HEADING]
        sight = center - self._camera.origin
        period = 2.0 * math.pi / fold
        relative = math.atan2(sine, cosine) / fold
        yaw = math.remainder(relative + math.atan2(sight[1], sight[0]), period)
        deviation = math.exp(answers[layout.HEADING_SPREAD]) * self._numbers.heading_scale / fold
        return yaw, min(deviation**2, _UNIFORM)


def face_points(face: Float32Array, cut: Cutout) -> FloatArray:
    """Return column, row [px] and height above the cut-out's level [m] of the face's pixels (k, 3).

    Without outliers; pixels are the image's, which the cut-out was made from.

    Args:
        face: probability of each cell that it shows the face (24, 24).
        cut: the cut-out.
    """
    step = layout.CLOSEUP_CELL
    shown = (face > _FACE).repeat(step, axis=0).repeat(step, axis=1)
    shown &= np.isfinite(cut.heights)
    rows, columns = np.nonzero(shown)
    points = np.empty((len(rows), 3))
    points[:, 2] = cut.heights[shown]
    middle = 0.5 * (layout.CLOSEUP - 1)
    pixels = cut.width / layout.CLOSEUP
    points[:, 0] = (columns - middle) * pixels + cut.pixel[0]
    points[:, 1] = (rows - middle) * pixels + cut.pixel[1]
    if not len(points):
        return points
    return points[np.abs(points[:, 2] - np.median(points[:, 2])) < _FACE_SPREAD]
