"""The guard against reuse into a collision.

A cached motion is tested as it would run now: joined to the measured start, its end moved with the
target. From rest that is what the synthesizer makes of it; where the arm moves, it tests its own
once more. This guard is what turns a motion into an obstacle into a miss, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.guards import Candidate, position_columns
from kv_action_router.contracts import (
    BehaviorValue,
    FloatArray,
    JointSample,
    ObstacleSpheres,
    Pose,
    SeenObstacles,
    TargetEstimate,
)
from kv_action_router.errors import InputError, MissingJointsError, UnreachableError
from kv_action_router.robots.collision import NO_SPHERES
from kv_action_router.robots.model import RobotModel
from kv_action_router.robots.swept import SweptCollision
from kv_action_router.robots.turns import aligned

DEGREE = 5
VERDICT_NS = 100_000_000  # that long a verdict may be used again
VERDICTS = 8
SAME_MOTION = 0.25  # share of the padding by which start and target may differ from a verdict's
WARM_UP_ROUNDS = 10
WARM_UP_TURN = 0.5  # [rad]
SAME_PLACE = 1.0e-6  # [m] a target that moved less has not moved


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What came of a test, and what was tested."""

    at_ns: int
    start: FloatArray
    target: FloatArray | None
    reason: str | None


class CollisionGuard:
    """Refuses a motion that would touch an obstacle, the table or the arm itself.

    Obstacles that were seen too long ago vouch for nothing: then every motion is refused, and
    planned anew. Where none were ever seen (no camera), table and arm are tested alone. Questions
    without a start state are let pass: there is nothing to join the motion to.

    Belongs to the thread that decides.
    """

    name = "collision"

    def __init__(
        self,
        model: RobotModel,
        config: CachingConfig,
        look: Callable[[], SeenObstacles | None],
        clock: Callable[[], int],
    ) -> None:
        """Make a guard.

        Args:
            model: of the robot; not used by another thread.
            config: padding, allowed contact, oldest age.
            look: returns obstacles that came since the last call, or None.
            clock: CLOCK_MONOTONIC [ns].

        Raises:
            ConfigError: a contact link is none of the robot's.
        """
        self._model = model
        self._config = config
        self._look = look
        self._clock = clock
        self._seen: SeenObstacles | None = None
        collision = model.collision_model(config.table_plane)
        config.check_links(collision.links)
        self._swept = SweptCollision(collision)
        self._reach = collision.extent
        self._verdicts: dict[tuple[int, int, str], _Verdict] = {}

    def check(
        self, candidate: Candidate, joints: JointSample | None, behavior: BehaviorValue
    ) -> str | None:
        """Refuse a motion that comes too near to something."""
        if joints is None:
            return None
        if (newer := self._look()) is not None:
            self._seen = newer
            self._verdicts.clear()
        seen, now_ns = self._seen, self._clock()
        if seen is not None:
            age_ms = (now_ns - seen.seen_ns) * 1e-6
            if age_ms > self._config.obstacle_age_ms:
                limit = self._config.obstacle_age_ms
                return f"obstacles were seen {age_ms:.0f} ms ago, limit {limit:.0f} ms"
        what = candidate.entry_id, candidate.version, candidate.allowed_contact
        verdict = self._verdicts.get(what)
        if verdict is not None and self._still_holds(verdict, candidate, joints, now_ns):
            return verdict.reason
        spheres = NO_SPHERES if seen is None else seen.spheres
        reason = self._refusal(candidate, joints, behavior, spheres)
        target = None if candidate.target is None else candidate.target.pose.position
        self._verdicts[what] = _Verdict(now_ns, joints.position, target, reason)
        if len(self._verdicts) > VERDICTS:
            del self._verdicts[next(iter(self._verdicts))]
        return reason

    def _still_holds(
        self, verdict: _Verdict, candidate: Candidate, joints: JointSample, now_ns: int
    ) -> bool:
        if not 0 <= now_ns - verdict.at_ns <= VERDICT_NS:
            return False
        if len(joints.position) != len(verdict.start):
            return False
        moved = float(np.abs(joints.position - verdict.start).sum()) * self._reach
        before, target = verdict.target, candidate.target
        if before is None or target is None:
            if before is not None or target is not None:
                return False
        else:
            moved += float(np.abs(target.pose.position - before).sum())
        return moved <= SAME_MOTION * self._config.collision_padding  # NaN compares false

    def warm_up(self) -> None:
        """Test a motion around home, so that the first real one is not the slow one."""
        model = self._model
        home, zero = model.home, np.zeros(model.n)
        tip = model.forward(home)[0]
        turn = np.linspace(0.0, WARM_UP_TURN, 2 * DEGREE)
        degree, inner = DEGREE, np.linspace(0.0, 1.0, DEGREE + 1)
        behavior = BehaviorValue(
            subtask="warm_up_v1",
            dimensions=tuple(f"{name}/position" for name in model.joint_names),
            degree=degree,
            knots=np.concatenate((np.zeros(degree), inner, np.ones(degree))),
            coefficients=home + np.outer(turn, np.eye(model.n)[0]),
            phase=0.0,
            decay=np.ones(model.n),
            target=Pose(tip),
        )
        moved = TargetEstimate(Pose(tip + 0.01), np.eye(6))
        candidate = Candidate("", 0, 0, "", "", 1.0, 1.0, moved, "warm_up")
        joints = JointSample(model.joint_names, home, zero, zero, 0)
        angles = np.linspace(0.0, 2.0 * np.pi, ObstacleSpheres.MAXIMUM)
        around = tip + 0.25 * np.column_stack((np.cos(angles), np.sin(angles), 0.0 * angles))
        spheres = np.column_stack((around, np.full(len(around), 0.01)))
        for _ in range(WARM_UP_ROUNDS):
            self._refusal(candidate, joints, behavior, spheres)

    def _refusal(
        self,
        candidate: Candidate,
        joints: JointSample,
        behavior: BehaviorValue,
        spheres: FloatArray,
    ) -> str | None:
        try:
            target = candidate.target
            touch = self._swept.first_touch(
                self._joined(candidate, joints, behavior),
                _duration(behavior),
                spheres,
                self._config.collision_padding,
                self._config.contact(candidate.allowed_contact, target.pose if target else None),
            )
        except (MissingJointsError, InputError) as error:  # what can't be tested doesn't pass
            return str(error)
        return None if touch is None else f"{touch}, padding {self._config.collision_padding:g} m"

    def _joined(
        self, candidate: Candidate, joints: JointSample, behavior: BehaviorValue
    ) -> Callable[[FloatArray], FloatArray]:
        """Return the positions (m, n) of the corrected motion at times (m,).

        Differences at both ends are spread over the whole motion by the least-jerk polynomial
        between rest and rest, as the synthesizer spreads them.

        Raises:
            MissingJointsError: the value has no column for a joint, or it is not measured.
        """
        model = self._model
        columns = position_columns(behavior.dimensions)
        missing = [name for name in model.joint_names if name not in columns]
        if missing:
            raise MissingJointsError(f"behavior has no positions of {', '.join(missing)}")
        order = [columns[name] for name in model.joint_names]
        coefficients = behavior.coefficients[:, order]
        start = joints.position[model.order(joints.names)]
        coefficients = coefficients + aligned(coefficients[0], start, model)
        at_start = start - coefficients[0]
        at_end = self._moved_end(candidate, behavior, coefficients[-1]) - coefficients[-1]
        # It was checked when it was inserted: what the usual way to make one checks again.
        spline = BSpline.construct_fast(behavior.knots, coefficients, behavior.degree)
        duration = _duration(behavior)

        def position(times: FloatArray) -> FloatArray:
            share = times / duration
            share = (share**3 * (10.0 - 15.0 * share + 6.0 * share**2))[:, None]
            moved: FloatArray = spline(times) + (1.0 - share) * at_start + share * at_end
            return moved

        return position

    def _moved_end(
        self, candidate: Candidate, behavior: BehaviorValue, end: FloatArray
    ) -> FloatArray:
        """Return where the motion ends with the target where it is now [rad] (n,)."""
        if behavior.target is None or candidate.target is None:
            return end
        displacement = candidate.target.pose.position - behavior.target.position
        if np.abs(displacement).max() < SAME_PLACE:
            return end
        position, rotation = self._model.forward(end)
        try:
            return self._model.solve_ik(position + displacement, rotation, end)
        except UnreachableError:
            return end  # the synthesizer will not get there either, and plans anew


def _duration(behavior: BehaviorValue) -> float:
    return float(behavior.knots[-1])


__all__ = ["CollisionGuard"]
