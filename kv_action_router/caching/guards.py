"""Guards: what must hold before a hit may move anything.

A guard is a small object; the manager asks a list of them in order, and the first that refuses ends
it. The dearest stands last: ``collision_guard``, which reads the newest obstacles itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.interpolate import BSpline

from kv_action_router.contracts import BehaviorValue, FloatArray, JointSample, TargetEstimate


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the match knows when it asks a guard.

    Attributes:
        domain: that asks.
        entry_id, version: of the entry.
        source_domain: that it comes from.
        subtask: that was asked for.
        similarity, target_similarity: to the key; NaN = not measured.
        target: that the key holds, or None.
        allowed_contact: what the stage may touch; empty = nothing.
    """

    domain: str
    entry_id: int
    version: int
    source_domain: str
    subtask: str
    similarity: float
    target_similarity: float
    target: TargetEstimate | None = None
    allowed_contact: str = ""


class Guard(Protocol):
    """One reason to refuse a candidate."""

    name: str

    def check(
        self, candidate: Candidate, joints: JointSample | None, behavior: BehaviorValue
    ) -> str | None:
        """Return why the candidate is refused, with value and limit, or None.

        Args:
            candidate: the match so far.
            joints: measured start state; None = the question names none (QueryCache).
            behavior: the motion that would run.
        """


class JointModel(Protocol):
    """What the guards need of a robot's model (``RobotModel`` fits); arrays are (n,)."""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names, in the order of all arrays."""

    @property
    def lower(self) -> FloatArray:
        """Lower position limit [rad]; -inf for continuous joints."""

    @property
    def upper(self) -> FloatArray:
        """Upper position limit [rad]."""

    @property
    def continuous(self) -> npt.NDArray[np.bool_]:
        """Joints that turn without end."""

    @property
    def spindles(self) -> npt.NDArray[np.bool_]:
        """Those of them that do not move the tip."""


@lru_cache(maxsize=64)
def position_columns(dimensions: tuple[str, ...]) -> Mapping[str, int]:
    """Return joint -> column of the positions among a behavior's dimensions."""
    columns = {}
    for index, dimension in enumerate(dimensions):
        joint, _, interface = dimension.rpartition("/")
        if interface == "position":
            columns[joint] = index
    return columns


class EmptyGuard:
    """Refuses a value that holds no motion."""

    name = "empty"

    def check(
        self, candidate: Candidate, joints: JointSample | None, behavior: BehaviorValue
    ) -> str | None:
        """Refuse fewer points than the spline's degree asks for."""
        points = len(behavior.coefficients)
        if points > behavior.degree and behavior.dimensions:
            return None
        return f"behavior has {points} points, at least {behavior.degree + 1} are needed"


class FiniteGuard:
    """Refuses a value that holds NaN or infinity."""

    name = "finite"

    def check(
        self, candidate: Candidate, joints: JointSample | None, behavior: BehaviorValue
    ) -> str | None:
        """Refuse coefficients or knots that are not finite."""
        for field in ("coefficients", "knots"):
            if not np.isfinite(getattr(behavior, field)).all():
                return f"behavior.{field} must be finite, got a value that is not"
        return None


class JointLimitGuard:
    """Refuses a motion that may leave the joints' position limits.

    A B-spline lies in the convex hull of its coefficients, so coefficients inside the limits keep
    every sample inside; no sampling is needed.
    """

    name = "joint_limits"

    def __init__(self, model: JointModel) -> None:
        self._limits: Mapping[str, tuple[float, float]] = {
            joint: (float(lower), float(upper))
            for joint, lower, upper in zip(model.joint_names, model.lower, model.upper, strict=True)
        }

    def check(
        self, candidate: Candidate, joints: JointSample | None, behavior: BehaviorValue
    ) -> str | None:
        """Refuse unknown joints and positions outside their limits."""
        least = behavior.coefficients.min(axis=0).tolist()
        most = behavior.coefficients.max(axis=0).tolist()
        for joint, column in position_columns(behavior.dimensions).items():
            if joint not in self._limits:
                return f"{joint} is no joint of the robot ({', '.join(self._limits)})"
            lower, upper = self._limits[joint]
            lowest, highest = least[column], most[column]
            if lowest < lower or highest > upper:
                value, limit = (lowest, lower) if lowest < lower else (highest, upper)
                return f"{joint} would reach {value:.3f} rad, limit {limit:.3f} rad"
        return None


class StartStateGuard:
    """Refuses a motion that starts too far from where the robot is.

    The joining motion that re-anchoring adds grows with this distance. A continuous joint is
    compared after the whole turns that re-anchoring takes out; where a spindle stands makes no
    difference.
    """

    name = "start_state"

    def __init__(self, model: JointModel, limit: float) -> None:
        """Guard with a limit for the largest joint distance [rad]."""
        self._continuous = {
            joint
            for joint, continuous in zip(model.joint_names, model.continuous, strict=True)
            if continuous
        }
        self._spindles = frozenset(
            joint
            for joint, spindle in zip(model.joint_names, model.spindles, strict=True)
            if spindle
        )
        self._limit = limit

    def check(
        self, candidate: Candidate, joints: JointSample | None, behavior: BehaviorValue
    ) -> str | None:
        """Refuse a joint that is not measured, or too far from the motion's start."""
        if joints is None:
            return None
        columns = position_columns(behavior.dimensions)
        if not columns:
            return None
        missing = [joint for joint in columns if joint not in joints.names]
        if missing:
            return f"{', '.join(missing)} not measured, the motion starts with it"
        position, start = joints.position.tolist(), _start(behavior).tolist()
        worst, largest = "", -1.0
        for joint, column in columns.items():
            measured = position[joints.names.index(joint)]
            if not math.isfinite(measured):
                return f"{joint} is not measured (not finite)"
            distance = measured - start[column]
            if joint in self._spindles:
                continue
            if joint in self._continuous:
                distance = math.remainder(distance, math.tau)
            if abs(distance) > largest:
                worst, largest = joint, abs(distance)
        if largest <= self._limit:
            return None
        return (
            f"{worst} is {largest:.3f} rad from the start of the motion, "
            f"limit {self._limit:.3f} rad"
        )


class ReaderTrustGuard:
    """Refuses another domain's entry that has failed its reader too often.

    Sharing is for reading: what a reader experiences must not take the confidence bit from the
    owner's entry, so it is counted here. At most ``ROOM`` entries are remembered, the newest.
    """

    name = "reader_trust"
    ROOM = 1024

    def __init__(self, limit: int) -> None:
        """Guard with a limit for failures in a row."""
        self._limit = limit
        self._failures: dict[tuple[str, int, int], int] = {}

    def count(self, reader: str, entry_id: int, version: int, *, success: bool) -> None:
        """Note how another domain's entry did for a reader."""
        key = (reader, entry_id, version)
        before = self._failures.pop(key, 0)
        if not success:
            self._failures[key] = before + 1
            if len(self._failures) > self.ROOM:
                self._failures.pop(next(iter(self._failures)))

    def check(
        self, candidate: Candidate, joints: JointSample | None, behavior: BehaviorValue
    ) -> str | None:
        """Refuse an entry that reached the limit for this reader."""
        key = (candidate.domain, candidate.entry_id, candidate.version)
        failures = self._failures.get(key, 0)
        if failures < self._limit:
            return None
        return (
            f"entry {candidate.entry_id} of domain {candidate.source_domain!r} failed {failures} "
            f"times in a row for {candidate.domain!r}, limit {self._limit}"
        )


def ask(
    guards: Sequence[Guard],
    candidate: Candidate,
    joints: JointSample | None,
    behavior: BehaviorValue,
) -> tuple[str, str]:
    """Return name and reason of the first guard that refuses; empty strings when none does."""
    for guard in guards:
        reason = guard.check(candidate, joints, behavior)
        if reason is not None:
            return guard.name, reason
    return "", ""


def _start(behavior: BehaviorValue) -> FloatArray:
    """Return the position of every column where the motion starts (d,)."""
    if behavior.phase <= 0.0:  # a clamped spline starts at its first coefficient
        return np.asarray(behavior.coefficients[0], dtype=float)
    spline = BSpline(behavior.knots, behavior.coefficients, behavior.degree)
    first, last = float(behavior.knots[0]), float(behavior.knots[-1])
    return np.asarray(spline(first + min(1.0, behavior.phase) * (last - first)), dtype=float)
