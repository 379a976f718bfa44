"""Where targets may lie: on the table, inside the camera's view, in the arm's comfortable reach."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError, SimulationError, UnreachableError
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.camera import CameraModel
from kv_action_router.simulation.config import SimulationConfig

_ATTEMPTS = 200
_APART = 0.11  # [m] between two works: the tool at one hides nothing of the other
_HEIGHT_TOLERANCE = 1e-3  # [m]
_TILT_TOLERANCE = 0.02  # [rad]


class Reach:
    """Whether the tip, tool down, gets to a position [m] (3,). One thread may use it."""

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot

    def __call__(self, position: FloatArray) -> bool:
        """Ask the robot's inverse kinematics."""
        try:
            self._robot.solve_ik(position)
        except UnreachableError:
            return False
        return True


class TargetPlacement:
    """Checks requested places and draws random ones.

    Invariant: the n-th random place depends on the seed and on the tip's positions only.
    """

    def __init__(
        self,
        config: SimulationConfig,
        reachable: Callable[[FloatArray], bool],
        generator: np.random.Generator,
        covered: Callable[[FloatArray], bool] = lambda _: False,
    ) -> None:
        """Prepare.

        Args:
            config: region, camera and clearance.
            reachable: whether the tip, tool down, gets to a position in the base frame [m] (3,).
            generator: source of random places.
            covered: whether something stands where a target is to lie, x and y [m] (2,).
        """
        self._x = (config.target_x[0], config.target_x[1])
        self._y = (config.target_y[0], config.target_y[1])
        self._height = config.target_height
        self._radius = config.target_radius
        self._approach = config.approach_height
        self._clearance = config.target_clearance
        self._camera = CameraModel.of(config)
        self._reachable = reachable
        self._generator = generator
        self._covered = covered

    def random(
        self, present: FloatArray, tip: FloatArray, beside: FloatArray | None = None
    ) -> FloatArray:
        """Return a random place, x and y of the target's center [m] (2,).

        Args:
            present: where the target is, center of its top face [m] (3,).
            tip: foremost point of the tool [m] (3,).
            beside: x and y of other work that it must not be near [m] (2,); None = there is none.

        Raises:
            InputError: the tip is near the target now.
            SimulationError: no place was found in the region.
        """
        self._refuse_near("tip", present, tip)
        for _ in range(_ATTEMPTS):
            place = np.array([self._generator.uniform(*self._x), self._generator.uniform(*self._y)])
            if beside is not None and np.linalg.norm(place - beside) < _APART:
                continue
            try:
                self._check(place, tip)
            except InputError:
                continue
            return place
        raise SimulationError(
            f"no free place for a target in x {self._x} m, y {self._y} m after {_ATTEMPTS} attempts"
        )

    def requested(
        self, position: FloatArray, orientation: FloatArray, present: FloatArray, tip: FloatArray
    ) -> tuple[FloatArray, float]:
        """Return x, y [m] (2,) and yaw [rad] of a requested pose, or say why not.

        Args:
            position: center of the top face [m] (3,); z may also be 0, the table.
            orientation: x, y, z, w (4,); all zero counts as not turned.
            present: as in :meth:`random`.
            tip: as in :meth:`random`.

        Raises:
            InputError: naming field, limit and value.
        """
        if not np.isfinite(position).all():
            raise InputError("pose.position", "finite", position.tolist())
        yaw = yaw_of(orientation)
        z = float(position[2])
        if not -_HEIGHT_TOLERANCE <= z <= self._height + _HEIGHT_TOLERANCE:
            limit = f"0 to {self._height} m (the target lies on the table)"
            raise InputError("pose.position.z", limit, z)
        self._refuse_near("tip", present, tip)
        place = np.array(position[:2], float)
        self._check(place, tip)
        return place, yaw

    def _check(self, place: FloatArray, tip: FloatArray) -> None:
        for field, value, (lower, upper) in (
            ("pose.position.x", float(place[0]), self._x),
            ("pose.position.y", float(place[1]), self._y),
        ):
            if not lower <= value <= upper:
                raise InputError(field, f"{lower} to {upper} m", value)
        top = np.array([place[0], place[1], self._height])
        if not self._in_view(top):
            raise InputError("pose.position", "inside the camera's view", place.tolist())
        if self._covered(place):
            raise InputError("pose.position", "free of the box", place.tolist())
        self._refuse_near("tip to be", top, tip)
        above = top + np.array([0.0, 0.0, self._approach])
        if not (self._reachable(top) and self._reachable(above)):
            raise InputError("pose.position", "in the arm's reach", place.tolist())

    def _in_view(self, top: FloatArray) -> bool:
        for angle in np.linspace(0.0, 2.0 * math.pi, 8, endpoint=False):
            offset = self._radius * np.array([math.cos(angle), math.sin(angle), 0.0])
            u, v, depth = self._camera.project(top + offset)
            inside = 0.0 <= u <= self._camera.width - 1 and 0.0 <= v <= self._camera.height - 1
            if depth <= 0.0 or not inside:
                return False
        return True

    def _refuse_near(self, what: str, target: FloatArray, tip: FloatArray) -> None:
        distance = float(np.linalg.norm(target - tip))
        if distance < self._clearance:
            raise InputError(
                f"distance of {what} and target", f"at least {self._clearance} m", distance
            )


def yaw_of(orientation: FloatArray) -> float:
    """Return the yaw of x, y, z, w (4,) [rad].

    Raises:
        InputError: not finite, no unit quaternion, or tilted.
    """
    if not np.isfinite(orientation).all():
        raise InputError("pose.orientation", "finite", orientation.tolist())
    norm = float(np.linalg.norm(orientation))
    if norm == 0.0:
        return 0.0
    if abs(norm - 1.0) > 0.01:
        raise InputError("pose.orientation", "a unit quaternion", orientation.tolist())
    x, y, z, w = orientation / norm
    if 2.0 * math.hypot(x, y) > _TILT_TOLERANCE:
        raise InputError("pose.orientation", "a turn about z only", orientation.tolist())
    return 2.0 * math.atan2(z, w)
