"""How far the arm is beside its path: what it lags behind on the path does not count."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

_KEPT = 16  # set-points: a quarter of a second at the rate at which they are looked at


class RecentPath:
    """Where the set-point has been lately.

    Every drive lags: one that closes its own loop on positions by some 30 ms, which at 1 rad/s is
    more than a path may be off. It passes the same places all the same. So a position is compared
    with the polygon of the last set-points, not with the newest of them.
    """

    def __init__(self) -> None:
        self._points: deque[Sequence[float]] = deque(maxlen=_KEPT)

    def beside(self, position: Sequence[float], setpoint: Sequence[float], enough: float) -> float:
        """Take a set-point; return the distance of a position from the path.

        Args:
            position: measured [rad] (n,).
            setpoint: at the same time [rad] (n,).
            enough: a distance from the set-point itself that needs no better answer [rad].

        Returns:
            Of the joint that is farthest off, at the nearest place of the path [rad].
        """
        points = self._points
        points.append(setpoint)
        nearest = _apart(position, setpoint)
        if nearest <= enough:  # the usual case
            return nearest
        for begin, end in pairwise(points):
            nearest = min(nearest, _apart(position, _foot(position, begin, end)))
        return nearest


def _apart(position: Sequence[float], place: Sequence[float]) -> float:
    pairs = zip(position, place, strict=True)
    return max((abs(here - there) for here, there in pairs), default=0.0)


def _foot(
    position: Sequence[float], begin: Sequence[float], end: Sequence[float]
) -> Sequence[float]:
    """Return the point of a line between two places that is next to a position."""
    way = [there - here for here, there in zip(begin, end, strict=True)]
    length = sum(part * part for part in way)
    if length == 0.0:
        return begin
    along = sum((p - b) * w for p, b, w in zip(position, begin, way, strict=True)) / length
    share = max(0.0, min(1.0, along))
    return [here + share * part for here, part in zip(begin, way, strict=True)]
