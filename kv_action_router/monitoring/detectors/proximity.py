"""Proximity: how near the arm comes to what stands around it before it could stand still."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import ExecutionFeedback, FloatArray
from kv_action_router.errors import InputError
from kv_action_router.monitoring.detectors.motion import Motion
from kv_action_router.monitoring.samples import ObstacleSample
from kv_action_router.monitoring.signals import SignalTable
from kv_action_router.robots.model import RobotModel

_PERIOD_NS = 80_000_000  # between two judgments of a moving arm
_STILL = 0.01  # [rad/s] an arm that is slower sweeps nothing
_FAR = 10.0  # [m] clearance where nothing is seen at all
_AHEAD = (0.5, 1.0)  # shares of the way that are looked at, beside where the arm is


@dataclass(frozen=True, slots=True)
class ArmOutline:
    """What is asked of a robot's model.

    Attributes:
        order: index (n,) that brings a feedback's joints into the model's order.
        spheres: x, y, z, r [m] (m, 4) that cover the arm at joint positions (n,); the answer may
            be overwritten by the next call.
        tool: which of the spheres (m,) belong to links that may touch where contact is allowed.
    """

    order: Callable[[Sequence[str]], npt.NDArray[np.intp]]
    spheres: Callable[[FloatArray], FloatArray]
    tool: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, model: RobotModel, tool_links: Collection[str]) -> ArmOutline:
        """Return the outline of a robot's arm.

        Raises:
            InputError: one of ``tool_links`` is no link of the robot.
        """
        links = model.sphere_links
        if unknown := sorted(set(tool_links) - set(links)):
            raise InputError("tool_links", f"of {', '.join(dict.fromkeys(links))}", unknown)
        tool = np.array([link in tool_links for link in links], dtype=np.bool_)
        return cls(model.order, model.link_spheres, tool)


class ProximityDetector:
    """Writes ``clearance`` [m]: distance of the nearest obstacle from what the arm sweeps.

    The arm sweeps its way of the reaction time at its present speed, and of v / (2 a) more: as much
    way as it takes to brake. So the swept path, and with it the distance that is kept, grows with
    speed; an arm that moves away sweeps less. Negative = it would touch. In a stage that allows
    contact the links that may touch are left out. Nothing is measured while no task is under way.

    One judgment costs three kinematics and three distance tables of about 40 x 256: it is made for
    new obstacles, and every 80 ms while the arm moves.
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
        self._due_ns = 0
        self._asked = False
        self._contact = False

    def reset(self) -> None:
        """Forget obstacles and task."""
        self._obstacles = None
        self._new = self._asked = self._contact = False
        self._due_ns = 0

    def on_task(self, *, active: bool, contact: bool) -> None:
        """Take whether a task is under way, and whether its stage allows contact."""
        self._asked, self._contact = active, contact

    def on_obstacles(self, sample: ObstacleSample) -> None:
        """Take what the newest image shows; the next feedback judges it."""
        self._obstacles, self._receipt_ns, self._new = sample.spheres, sample.receipt_ns, True

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone: obstacles that are not renewed turn stale."""

    def on_feedback(self, feedback: ExecutionFeedback, motion: Motion, table: SignalTable) -> None:
        """Judge the arm of a feedback, if that is due."""
        arm, obstacles = self._arm, self._obstacles
        if arm is None or obstacles is None or not self._asked:
            return
        if not self._new and (
            feedback.monotonic_ns < self._due_ns or not max(map(abs, motion.velocity)) > _STILL
        ):
            return
        self._new = False
        self._due_ns = feedback.monotonic_ns + _PERIOD_NS
        order = arm.order(feedback.joints)
        position, speed = feedback.position[order], feedback.velocity[order]
        if not (np.isfinite(position).all() and np.isfinite(speed).all()):
            table.put("clearance", math.nan, self._receipt_ns)
            return
        table.put("clearance", self.clearance(position, speed, obstacles), self._receipt_ns)

    def clearance(self, position: FloatArray, velocity: FloatArray, obstacles: FloatArray) -> float:
        """Return the distance of obstacles (k, 4) from what an arm in this state sweeps [m]."""
        arm = self._arm
        assert arm is not None
        if not len(obstacles):
            return _FAR
        here = arm.spheres(position).copy()
        parts = [here]
        if np.abs(velocity).max() > _STILL:
            ahead = arm.spheres(position + velocity * self._reaction)
            way = ahead[:, :3] - here[:, :3]
            speed = math.sqrt(float(np.einsum("ij,ij->i", way, way).max())) / self._reaction
            time = self._reaction + speed / (2.0 * self._deceleration)
            parts += [arm.spheres(position + velocity * (time * s)).copy() for s in _AHEAD]
        keep = ~arm.tool if self._contact else slice(None)
        swept = np.concatenate([part[keep] for part in parts])
        return _distance(swept, obstacles)


def _distance(first: FloatArray, second: FloatArray) -> float:
    """Return the smallest distance between spheres (m, 4) and spheres (k, 4) [m]."""
    a, b = first[:, :3], second[:, :3]
    squared = a @ (-2.0 * b.T)
    squared += np.einsum("ij,ij->i", a, a)[:, None]
    squared += np.einsum("ij,ij->i", b, b)
    np.maximum(squared, 0.0, out=squared)
    np.sqrt(squared, out=squared)
    squared -= first[:, 3:4]
    squared -= second[:, 3]
    return min(_FAR, float(squared.min()))
