"""Ways around obstacles: the tip is lifted above them, or led beside them, to the same goal.

A few places for the tip between start and goal are tried in a fixed order, the likeliest first.
Each makes a smooth motion inside the limits, and the first that keeps clear is taken. That finds
the way around what stands on a table under an arm whose tool points down; it is no search, and a
maze is not solved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import CollisionError, SynthesisError
from kv_action_router.robots.model import RobotModel
from kv_action_router.robots.swept import Touch
from kv_action_router.synthesis.basis import DEGREE, ENDS, uniform_knots
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.reanchor import reanchor
from kv_action_router.synthesis.retime import LONGEST
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import Motion

CORRIDOR = 0.20  # [m] obstacles nearer than this to the straight way of the tip are in it
ABOVE = 0.03  # [m] beyond the padding, between the tip and what it passes above
BESIDE = 0.06  # [m] beyond the padding, between the tool's axis and what it passes beside
RAISES = (0.0, 0.08, 0.16)  # [m] more height, one after the other: links may be in the way too


@dataclass(frozen=True, slots=True)
class Way:
    """Places that the tip goes through.

    Attributes:
        name: for people.
        tips: [m], one a place.
    """

    name: str
    tips: tuple[FloatArray, ...]


class Detours:
    """Finds a way around. Not thread safe.

    Invariant: what the deadline leaves untried is tried first when the same stage asks again.
    """

    def __init__(
        self,
        model: RobotModel,
        config: SynthesisConfig,
        clearance: Clearance,
        clock: Callable[[], int],
    ) -> None:
        self._model = model
        self._config = config
        self._clearance = clearance
        self._clock = clock
        self._stage = ""
        self._next = 0  # way to begin with

    def around(
        self, request: PlanRequest, goal: FloatArray, limits: MotionLimits, direct: Touch
    ) -> Motion:
        """Return a motion that keeps clear, from the request's start to a goal [rad] (n,).

        Args:
            request: whose obstacles are in the way.
            goal: where the direct motion ends.
            limits: to keep.
            direct: where the direct motion would touch.

        Raises:
            CollisionError: start or goal touch something, or no way was clear, or time was over.
        """
        if direct.time == 0.0:
            raise CollisionError(f"motion would touch where it starts: {direct.pair}")
        pair = self._clearance.touch_at(goal, request)
        if pair is not None:
            raise CollisionError(f"motion would touch: {direct}; where it ends: {pair}")
        ways = self._ways(request, goal)
        if not ways:
            raise CollisionError(f"motion would touch: {direct}; no obstacle to go around")
        first = self._next % len(ways) if request.stage.name == self._stage else 0
        self._stage, self._next = request.stage.name, 0
        until_ns, refused = self._until(request), ""
        for number, way in enumerate(ways[first:], first):
            if number > first and self._clock() > until_ns:
                self._next = number
                raise CollisionError(
                    f"motion would touch: {direct}; {number} of {len(ways)} ways around tried when"
                    f" time was over, the last: {refused}"
                )
            try:
                motion = self._through(way, request, goal, limits)
            except SynthesisError as error:
                refused = f"{way.name}: {error}"
                continue
            touch = self._clearance.first_touch(motion, request)
            if touch is None:
                return motion
            refused = f"{way.name}: {touch}"
        raise CollisionError(
            f"motion would touch: {direct}; none of {len(ways)} ways around is clear,"
            f" the last: {refused}"
        )

    def _until(self, request: PlanRequest) -> float:
        """Return when to stop trying [ns]."""
        if request.match is None or not request.match.decision.trigger_monotonic_ns:
            return float("inf")
        trigger_ns = request.match.decision.trigger_monotonic_ns
        return trigger_ns + self._config.detour_until_ms * 1e6

    def _ways(self, request: PlanRequest, goal: FloatArray) -> list[Way]:
        first = self._model.forward(request.start.position)[0]
        last = self._model.forward(goal)[0]
        return list(_ways(first, last, request.obstacles, self._config.collision_padding))

    def _through(
        self, way: Way, request: PlanRequest, goal: FloatArray, limits: MotionLimits
    ) -> Motion:
        """Return a motion along a way, inside the limits.

        Raises:
            SynthesisError: a place can't be reached, touches something, or limits aren't kept.
        """
        corners = [request.start.position]
        for tip in way.tips:
            q = self._model.solve_ik(tip, None, corners[-1])
            pair = self._clearance.touch_at(q, request)
            if pair is not None:
                raise CollisionError(f"motion would touch: {pair}")
            corners.append(q)
        corners.append(goal)
        shape = _rounded(np.array(corners), limits, self._config.coefficients)
        return reanchor(shape, request.start, goal, limits, LONGEST, self._config.coefficients)


def _ways(
    first: FloatArray, last: FloatArray, obstacles: FloatArray, padding: float
) -> Iterator[Way]:
    """Yield ways of the tip from ``first`` to ``last`` [m] (3,) around obstacles (k, 4)."""
    way = last[:2] - first[:2]
    length = float(np.sqrt(way @ way))
    along = way / length if length > 1e-6 else np.array([1.0, 0.0])
    across = np.array([-along[1], along[0]])
    offset = obstacles[:, :2] - first[:2]
    ahead, aside = offset @ along, offset @ across
    inside = np.abs(aside) - obstacles[:, 3] < CORRIDOR
    inside &= (ahead + obstacles[:, 3] > -CORRIDOR) & (ahead - obstacles[:, 3] < length + CORRIDOR)
    if not inside.any():
        return
    spheres, ahead, aside = obstacles[inside], ahead[inside], aside[inside]
    top = float((spheres[:, 2] + spheres[:, 3]).max()) + padding + ABOVE
    for more in RAISES:
        height = top + more
        tips = tuple(
            np.array([place[0], place[1], height]) for place in (first, last) if place[2] < height
        )
        if tips:
            yield Way(f"above at {height:.2f} m", tips)
    high = max(float(first[2]), float(last[2]))
    middle = float(np.clip(0.5 * (ahead.min() + ahead.max()), 0.0, length))
    margin = padding + BESIDE
    sides = (
        float((aside + spheres[:, 3]).max()) + margin,
        float((aside - spheres[:, 3]).min()) - margin,
    )
    for side in sorted(sides, key=abs):
        place = first[:2] + middle * along + side * across
        yield Way(f"beside by {side:.2f} m", (np.array([*place, high]),))
        low = first if first[2] < last[2] else last
        over = np.array([low[0], low[1], high])
        tips = (
            (over, np.array([*place, high])) if low is first else (np.array([*place, high]), over)
        )
        yield Way(f"above and beside by {side:.2f} m", tips)


def _rounded(corners: FloatArray, limits: MotionLimits, size: int) -> Motion:
    """Return a motion whose coefficients lie near straight legs between corners [rad] (m, n).

    A B-spline stays near its coefficients and rounds what they do abruptly; each is the mean of
    three neighbors, which takes a fifth off the duration that jerk limits ask for. That duration is
    up to the caller: this one is the least that the joints' velocities allow at all.
    """
    legs = np.abs(np.diff(corners, axis=0)) / limits.velocity
    length = np.concatenate(([0.0], np.maximum(legs.max(axis=1), 1e-6).cumsum()))
    knots = uniform_knots(size)
    greville = np.lib.stride_tricks.sliding_window_view(knots[1:-1], DEGREE).mean(axis=1)
    share = greville**3 * (10.0 - 15.0 * greville + 6.0 * greville**2)
    where = share * length[-1]
    coefficients = np.column_stack(
        [np.interp(where, length, corners[:, joint]) for joint in range(corners.shape[1])]
    )
    inner = slice(ENDS, -ENDS)
    coefficients[inner] = np.lib.stride_tricks.sliding_window_view(
        coefficients[ENDS - 1 : 1 - ENDS], 3, axis=0
    ).mean(axis=2)
    return Motion.uniform(coefficients, max(float(length[-1]), 0.1))


__all__ = ["Detours", "Way"]
