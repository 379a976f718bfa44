"""What happened when faults were put into a moving system, and the bounds on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import lower_confidence_bound, summary

SAFE_LIMIT_MS = 200.0  # behind the watchdog's limit
REST_SPEED = 0.01  # [rad/s]
REST_HELD_NS = 100_000_000
REACTION_MS = 1000.0  # a rest that comes later is the motion's own end
INJECTIONS = 60  # fewer say little about all of them


@dataclass(frozen=True, slots=True)
class Motion:
    """Joint states as they were received; rows in order of receipt.

    Attributes:
        instant_ns: CLOCK_MONOTONIC of each receipt (k,).
        number: the writer's running number of each sample (k,).
        position, velocity: [rad], [rad/s] (k, n).
    """

    instant_ns: FloatArray
    number: FloatArray
    position: FloatArray
    velocity: FloatArray

    def since(self, instant_ns: int) -> Motion:
        """Return what was received from an instant on."""
        return self._where(self.instant_ns >= instant_ns)

    def until(self, instant_ns: int) -> Motion:
        """Return what was received up to an instant."""
        return self._where(self.instant_ns <= instant_ns)

    def _where(self, rows: npt.NDArray[np.bool_]) -> Motion:
        return Motion(
            self.instant_ns[rows], self.number[rows], self.position[rows], self.velocity[rows]
        )

    @property
    def speed(self) -> FloatArray:
        """Speed of the fastest joint [rad/s] (k,)."""
        fastest: FloatArray = np.abs(self.velocity).max(axis=1, initial=0.0)
        return fastest

    def rest_ns(self) -> int | None:
        """Return the first instant from which on every sample was at rest for 100 ms, or None."""
        at_rest = self.speed <= REST_SPEED
        begins = np.flatnonzero(at_rest & ~np.concatenate(([False], at_rest[:-1])))
        for begin in begins.tolist():
            moves = np.flatnonzero(~at_rest[begin:])
            end = begin + int(moves[0]) if moves.size else len(at_rest) - 1
            if self.instant_ns[end] - self.instant_ns[begin] >= REST_HELD_NS:
                return int(self.instant_ns[begin])
        return None

    def steps(self, period: float) -> tuple[FloatArray, FloatArray]:
        """Return the largest speed and acceleration between samples, by joint (n,), (n,).

        Args:
            period: of the writer [s]; samples that were lost between two lengthen the step.
        """
        joints = self.position.shape[1]
        if len(self.number) < 2:
            return np.zeros(joints), np.zeros(joints)
        dt = period * np.maximum(1.0, np.diff(self.number))[:, None]
        speed = np.abs(np.diff(self.position, axis=0)) / dt
        acceleration = np.abs(np.diff(self.velocity, axis=0)) / dt
        return speed.max(axis=0), acceleration.max(axis=0)


@dataclass(frozen=True)
class FaultRecord:
    """One fault put into a system while the arm moved.

    Attributes:
        name: what was done, e.g. ``joint_states silence``.
        source: that a report must name; empty = none has to.
        watchdog_ms: after which the fault can be known at all [ms].
        speed: of the fastest joint at the onset [rad/s].
        rest_ms: from the onset to the first rest [ms]; None = there was none.
        position_step: largest position step over the per-tick limit v_max dt, while the fault
            lasted and a while after.
        velocity_step: largest velocity step over the per-tick limit a_max dt, likewise. Both are
            of the arm as it was measured, not of its set-point.
        ended: how the task ended: ``succeeded``, ``failed: ...`` or ``was stopped``.
        reports: ``source [code] message`` of each event from the onset on.
        named: one of them names the source.
        moved_after_stop: the arm moved again before the stop was released.
        died: processes that ended without having been asked to.
        begun_again: times that its system, or its task, was begun again before the fault could be
            put in.
    """

    name: str
    source: str
    watchdog_ms: float
    speed: float
    rest_ms: float | None
    position_step: float
    velocity_step: float
    ended: str
    reports: tuple[str, ...]
    named: bool
    moved_after_stop: bool
    died: tuple[str, ...]
    begun_again: int = 0

    @property
    def reaction_ms(self) -> float | None:
        """Time to the rest that the fault caused [ms]; None = the arm went on.

        A fault that needs no report and let the task succeed has stopped nothing: what came to
        rest then was a stage's own motion.
        """
        went_on = not self.source and self.ended == "succeeded"
        if went_on or self.rest_ms is None or self.rest_ms > REACTION_MS:
            return None
        return self.rest_ms

    @property
    def faults(self) -> tuple[str, ...]:
        """What should not have happened; for people."""
        wrong = []
        limit = self.watchdog_ms + SAFE_LIMIT_MS
        if self.reaction_ms is None:
            if self.ended != "succeeded":
                wrong.append(f"the arm went on and its task {self.ended}")
        elif self.reaction_ms > limit:
            wrong.append(f"at rest after {self.reaction_ms:.0f} ms, limit {limit:.0f} ms")
        for what, step in (("position", self.position_step), ("velocity", self.velocity_step)):
            if step > 1.0:
                wrong.append(f"a {what} step of {step:.2f} times the per-tick limit")
        if self.source and not self.named:
            wrong.append(f"no report names {self.source}")
        if self.moved_after_stop:
            wrong.append("moved after the stop")
        wrong += [f"{name} died" for name in self.died]
        return tuple(wrong)


def figures(records: Sequence[FaultRecord]) -> dict[str, Any]:
    """Return the report: totals, times, and every fault."""
    good = sum(not record.faults for record in records)
    reactions = [r.reaction_ms for r in records if r.reaction_ms is not None]
    return {
        "injections": len(records),
        "safe": good,
        "safe_lower_bound_95": lower_confidence_bound(good, len(records)),
        "begun_again": sum(record.begun_again for record in records),
        "resumed": sum(record.ended == "succeeded" for record in records),
        "rest_ms": summary(reactions),
        "position_step": summary([record.position_step for record in records]),
        "velocity_step": summary([record.velocity_step for record in records]),
        "faults": [f"{record.name}: {fault}" for record in records for fault in record.faults],
        "records": [
            {**dataclasses.asdict(record), "faults": list(record.faults)} for record in records
        ],
    }


BOUNDS = (
    Bound("injections", at("injections"), ">=", INJECTIONS),
    Bound(
        "injections that were not safe",
        lambda report: float(report["injections"] - report["safe"]),
        "==",
        0,
    ),
)
