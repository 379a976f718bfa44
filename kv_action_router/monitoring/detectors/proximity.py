"""Proximity: how near the arm comes to what stands around it before it could stand still."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import ExecutionFeedback, FloatArray
from kv_action_router.errors import InputError
from kv_action_router.monitoring.samples import ObstacleSample
from kv_action_router.monitoring.signals import SignalTable
from kv_action_router.robots.model import RobotModel

_STILL = 0.01  # [rad/s] an arm that is slower sweeps nothing
_NUDGE = 0.1  # [rad] of every joint: what does not move with it stands for ever
_LARGEST = 0.2  # [m] radius of a sphere of the arm
FAR = 0.3  # [m] largest clearance that is told: what is farther away concerns nobody


@dataclass(frozen=True, slots=True)
class ArmOutline:
    """What is asked of a robot's model.

    Attributes:
        order: index (n,) that brings a feedback's joints into the model's order.
        spheres: x, y, z, r [m] (m, 4) that cover the arm at joint positions (n,); the answer may
            be overwritten by the next call.
        moving: rows (i,) of the spheres that a joint moves: what stands near the base is its mount.
        without_tool: those of them (j,) that may not touch where contact is allowed.
    """

    order: Callable[[Sequence[str]], npt.NDArray[np.intp]]
    spheres: Callable[[FloatArray], FloatArray]
    moving: npt.NDArray[np.intp]
    without_tool: npt.NDArray[np.intp]

    @classmethod
    def of(cls, model: RobotModel, tool_links: Collection[str]) -> ArmOutline:
        """Return the outline of a robot's arm.

        Raises:
            InputError: one of ``tool_links`` is no link of the robot, or its links are too thick.
        """
        links = model.sphere_links
        if unknown := sorted(set(tool_links) - set(links)):
            raise InputError("tool_links", f"of {', '.join(dict.fromkeys(links))}", unknown)
        here = model.link_spheres(model.home).copy()
        if here[:, 3].max() > _LARGEST:
            raise InputError("robot", f"of links at most {_LARGEST} m thick", here[:, 3].max())
        moves = (model.link_spheres(model.home + _NUDGE) != here).any(axis=1)
        tool = np.array([link in tool_links for link in links], dtype=np.bool_)
        return cls(
            model.order, model.link_spheres, np.flatnonzero(moves), np.flatnonzero(moves & ~tool)
        )


class ProximityDetector:
    """Writes ``clearance`` [m]: distance of the nearest obstacle from what the arm sweeps.

    The arm sweeps its way of the reaction time at its present speed, and of v / (2 a) more: as much
    way as it takes to brake. So the swept path, and with it the distance that is kept, grows with
    speed; an arm that moves away sweeps less. Negative = it would touch. In a stage that allows
    contact the links that may touch are left out. Nothing is measured while no task is under way.

    Judged once for each image's obstacles (10 Hz): two kinematics and one table of distances.
    """

    def __init__(
        self,
        arm: ArmOutline | None,
        *,
        reaction: float = 0.25,
        deceleration: float = 2.0,
    ) -> None:
        """Watch an arm.

        Args:
            arm: None = nothing is ever measured.
            reaction: from what the camera sees to the arm's first answer [s].
            deceleration: that the arm's points brake with at least [m/s^2].
        """
        self._arm = arm
        self._reaction = reaction
        self._deceleration = deceleration
        self._obstacles: FloatArray | None = None  # x, y, z, r [m] (k, 4)
        self._receipt_ns = 0
        self._new = False
        self._asked = self._contact = False

    def reset(self) -> None:
        """Forget obstacles and task."""
        self._obstacles = None
        self._new = self._asked = self._contact = False

    def on_task(self, *, active: bool, contact: bool) -> None:
        """Take whether a task is under way, and whether its stage allows contact."""
        self._asked, self._contact = active, contact

    def on_obstacles(self, sample: ObstacleSample) -> None:
        """Take what the newest image shows; the next feedback judges it."""
        self._obstacles, self._receipt_ns, self._new = sample.spheres, sample.receipt_ns, True

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone: obstacles that are not renewed turn stale."""

    def on_feedback(self, feedback: ExecutionFeedback, table: SignalTable) -> None:
        """Judge the arm of a feedback, if there is anything new around it."""
        arm, obstacles = self._arm, self._obstacles
        if not self._new or arm is None or obstacles is None or not self._asked:
            return
        self._new = False
        order = arm.order(feedback.joints)
        position, speed = feedback.position[order], feedback.velocity[order]
        if not (np.isfinite(position).all() and np.isfinite(speed).all()):
            table.put("clearance", math.nan, self._receipt_ns)
            return
        table.put("clearance", self.clearance(position, speed, obstacles), self._receipt_ns)

    def clearance(self, position: FloatArray, velocity: FloatArray, obstacles: FloatArray) -> float:
        """Return the distance of obstacles (k, 4) from what an arm in this state sweeps [m].

        At most ``FAR``.
        """
        arm = self._arm
        assert arm is not None
        if not len(obstacles):
            return FAR
        rows = arm.without_tool if self._contact else arm.moving
        here = arm.spheres(position).take(rows, axis=0)
        if np.abs(velocity).max() <= _STILL:
            return _distance(here, _within(obstacles, here[:, :3]))
        ahead = arm.spheres(position + velocity * self._reaction).take(rows, axis=0)
        way = ahead[:, :3] - here[:, :3]
        speed = math.sqrt(float(np.einsum("ij,ij->i", way, way).max())) / self._reaction
        # The way goes on straight: over a few tenths of a second the arc leaves it by millimeters.
        way *= 1.0 + speed / (2.0 * self._deceleration * self._reaction)
        swept = np.concatenate((here, here, here))
        size = len(here)
        swept[2 * size :, :3] += way
        way *= 0.5
        swept[size : 2 * size, :3] += way
        return _distance(swept, _within(obstacles, swept[:, :3]))


def _within(obstacles: FloatArray, points: FloatArray) -> FloatArray:
    """Return the obstacles (k, 4) that may be nearer than ``FAR`` to spheres around points (m, 3).

    No link's sphere is larger than ``_LARGEST``.
    """
    reach = obstacles[:, 3:4] + (FAR + _LARGEST)
    centers = obstacles[:, :3]
    inside = (centers + reach >= points.min(axis=0)) & (centers - reach <= points.max(axis=0))
    return obstacles[inside.all(axis=1)]


def _distance(first: FloatArray, second: FloatArray) -> float:
    """Return the smallest distance between spheres (m, 4) and spheres (k, 4) [m], at most FAR."""
    if not len(second):
        return FAR
    # |a - b|^2 as one product: (-2 a, |a|^2, 1) . (b, 1, |b|^2)
    left, right = np.ones((len(first), 5)), np.ones((5, len(second)))
    np.multiply(first[:, :3], -2.0, out=left[:, :3])
    np.einsum("ij,ij->i", first[:, :3], first[:, :3], out=left[:, 3])
    right[:3] = second[:, :3].T
    np.einsum("ij,ij->i", second[:, :3], second[:, :3], out=right[4])
    apart = left @ right
    np.maximum(apart, 0.0, out=apart)
    np.sqrt(apart, out=apart)
    apart -= first[:, 3:4]
    apart -= second[:, 3]
    return min(FAR, float(apart.min()))
