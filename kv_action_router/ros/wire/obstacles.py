"""ObstacleSpheres: from stage 1 to whoever plans."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import ObstacleSpheres, SeenObstacles, Stage
from kv_action_router.errors import InputError
from kv_action_router.msg import ObstacleSpheres as ObstacleSpheresMessage
from kv_action_router.ros.wire import decisions
from kv_action_router.ros.wire.reader import FieldReader
from kv_action_router.ros.wire.writer import FieldWriter

_FIELDS = ("center", "radius")


class ObstacleWriter:
    """Serializes obstacles. One thread may use it."""

    def __init__(self) -> None:
        self._writer = FieldWriter(ObstacleSpheresMessage, (*decisions.NAMES, *_FIELDS))

    def write(self, obstacles: ObstacleSpheres, published_ns: int) -> bytes:
        """Return the message of obstacles whose key was published at ``published_ns`` [ns].

        Raises:
            InputError: more than 256, or not three coordinates a radius.
        """
        _check(obstacles.center.size, obstacles.radius.size)
        header = decisions.values(obstacles.decision, Stage.KEY, published_ns)
        return self._writer.write((*header, obstacles.center, obstacles.radius))


class ObstacleReader:
    """Reads obstacles. One thread may use it."""

    def __init__(self) -> None:
        names = ("decision.trigger_monotonic_ns", *_FIELDS)
        self._reader = FieldReader(ObstacleSpheresMessage, names, _FIELDS)

    def read(self, data: bytes) -> SeenObstacles:
        """Return the spheres, and when they were seen.

        Raises:
            InputError: not complete, more than 256, or not three coordinates a radius.
        """
        values = self._reader.read(data)
        assert values is not None  # the message holds no sequence of messages
        seen_ns, center, radius = values
        _check(center.size, radius.size)
        spheres = np.empty((radius.size, 4))
        spheres[:, :3] = center.reshape(-1, 3)
        spheres[:, 3] = radius
        return SeenObstacles(spheres, seen_ns)


def _check(coordinates: int, radii: int) -> None:
    if radii > ObstacleSpheres.MAXIMUM:
        raise InputError("radius", f"at most {ObstacleSpheres.MAXIMUM} obstacles", radii)
    if coordinates != 3 * radii:
        raise InputError("center", f"of size 3 * {radii}", coordinates)
