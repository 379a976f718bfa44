"""Proximity: how near the arm comes to what stands around it before it could stand still."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import ExecutionFeedback, FloatArray
from kv_action_router.errors import InputError, RouterError
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
    An arm whose task is interrupted counts as moving as it did before: it would go on that way, so
    an obstacle that stopped it is still in its way when it stands.

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
        self._asked = self._contact = self._held = False
        self._going: FloatArray | None = None  # [rad/s] velocities of the task that is interrupted

    def reset(self) -> None:
        """Forget obstacles and task."""
        self._obstacles = self._going = None
        self._new = self._asked = self._contact = self._held = False

    def on_task(self, *, active: bool, contact: bool, held: bool) -> None:
        """Take what the task says.

        Args:
            active: it is under way.
            contact: its stage allows contact.
            held: it is interrupted.
        """
        self._asked, self._contact, self._held = active, contact, held

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
        clearance = math.nan
        try:
            order = arm.order(feedback.joints)
        except RouterError:
            pass  # another robot's joints: where this one is is not measured
        else:
            position, speed = feedback.position[order], feedback.velocity[order]
            if np.isfinite(position).all() and np.isfinite(speed).all():
                if not self._held:
                    self._going = speed
                elif self._going is not None:
                    speed = self._going
                clearance = self.clearance(position, speed, obstacles)
        table.put("clearance", clearance, self._receipt_ns)

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
        way = np.zeros((len(rows), 3))
        if np.abs(velocity).max() > _STILL:
            ahead = arm.spheres(position + velocity * self._reaction)
            np.subtract(ahead.take(rows, axis=0)[:, :3], here[:, :3], out=way)
            speed = math.sqrt(float(np.einsum("ij,ij->i", way, way).max())) / self._reaction
            # It goes on straight: over a few tenths of a second the arc leaves it by millimeters.
            way *= 1.0 + speed / (2.0 * self._deceleration * self._reaction)
        return _distance(here, way, _within(obstacles, here[:, :3], way))


def _within(obstacles: FloatArray, points: FloatArray, way: FloatArray) -> FloatArray:
    """Return the obstacles (k, 4) that may be nearer than ``FAR`` to spheres that go from points.

    No link's sphere is larger than ``_LARGEST``; points and way are (m, 3).
    """
    ends = points + way
    low = np.minimum(points.min(axis=0), ends.min(axis=0))
    high = np.maximum(points.max(axis=0), ends.max(axis=0))
    reach = obstacles[:, 3:4] + (FAR + _LARGEST)
    centers = obstacles[:, :3]
    inside = (centers + reach >= low) & (centers - reach <= high)
    return obstacles[inside.all(axis=1)]


def _distance(arm: FloatArray, way: FloatArray, obstacles: FloatArray) -> float:
    """Return the smallest distance of spheres (m, 4) on straight ways (m, 3) from others (k, 4).

    |p - s|^2 - t (2 (p - s).d - t |d|^2) with d the way, s its start, and t the projection of p on
    it, clipped to 0 and 1 [m]; at most ``FAR``.
    """
    if not len(obstacles):
        return FAR
    start, points = arm[:, :3], obstacles[:, :3]
    squared = start @ (-2.0 * points.T)
    squared += np.einsum("ij,ij->i", start, start)[:, None]
    squared += np.einsum("ij,ij->i", points, points)
    length = np.einsum("ij,ij->i", way, way)[:, None]
    if length.any():
        along = way @ points.T
        along -= np.einsum("ij,ij->i", start, way)[:, None]
        share = along / np.maximum(length, 1e-12)
        np.clip(share, 0.0, 1.0, out=share)
        along *= 2.0
        along -= share * length
        along *= share
        squared -= along
    np.maximum(squared, 0.0, out=squared)
    np.sqrt(squared, out=squared)
    squared -= arm[:, 3:4]
    squared -= obstacles[:, 3]
    return min(FAR, float(squared.min()))
