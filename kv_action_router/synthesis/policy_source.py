"""A slow policy as a source of motions: asked once a miss, outside the deadline.

A decision must be answered 15 ms after its image, a policy takes tens of milliseconds. So the miss
asks it and stays open: each following match of the same decision looks whether the answer is there
and, once it is, joins it to where the robot is by then. The motion enters the cache as any replan
does, and the next similar situation is a hit that asks nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import LimitError, PlanPendingError, PolicyError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.policy import Asker, Observation
from kv_action_router.synthesis.reanchor import reanchor
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import Motion

FEWEST_ACTIONS, MOST_ACTIONS = 2, 1000


class PolicySource:
    """A ``BehaviorSource`` whose motions come from a policy. Not thread safe."""

    def __init__(
        self,
        model: RobotModel,
        config: SynthesisConfig,
        asker: Asker,
        clearance: Clearance | None = None,
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """Make a source.

        Args:
            model: of the robot.
            config: of the stage.
            asker: of the policy.
            clearance: tests motions; None = nothing is tested.
            clock: CLOCK_MONOTONIC [ns].
        """
        self._model = model
        self._config = config
        self._asker = asker
        self._clearance = clearance
        self._clock = clock
        self._limits = MotionLimits.of(model)
        self._open: tuple[str, int] | None = None  # stage and decision that were asked for
        self._asked_ns = 0
        self.calls = 0

    def plan(self, request: PlanRequest) -> Motion:
        """Return the policy's motion from the request's start state.

        Raises:
            PlanPendingError: the policy has been asked and thinks.
            PolicyError: it failed, answered what is no motion, or not in time.
            LimitError: its motion leaves the joints' position limits.
            ReanchorError: it can't be joined to where the robot is.
            CollisionError: it would touch something.
        """
        decision_id = 0 if request.match is None else request.match.decision.decision_id
        question = request.stage.name, decision_id
        now_ns = self._clock()
        if question != self._open:
            self._asker.ask(
                Observation(
                    request.stage.name,
                    request.start.position,
                    request.start.velocity,
                    request.target,
                    request.obstacles,
                )
            )
            self._open, self._asked_ns = question, now_ns
            self.calls += 1
            raise PlanPendingError(f"the policy was asked for stage {request.stage.name!r}")
        try:
            actions = self._asker.answer()
        except PolicyError:
            self._open = None
            raise
        waited = (now_ns - self._asked_ns) * 1e-9
        if actions is None:
            if waited > self._config.policy_time_limit:
                self._open = None
                limit = self._config.policy_time_limit
                raise PolicyError(f"the policy must answer within {limit:g} s, waited {waited:.2f}")
            raise PlanPendingError(f"the policy has been thinking for {waited * 1e3:.0f} ms")
        self._open = None
        motion = self._joined(self._checked(actions), request)
        if self._clearance is not None:
            self._clearance.check(motion, request)
        return motion

    def _checked(self, actions: FloatArray) -> FloatArray:
        n = self._model.n
        actions = np.asarray(actions, dtype=float)
        if actions.ndim != 2 or actions.shape[1] != n:
            raise PolicyError(f"actions must be (h, {n}), got {actions.shape}")
        if not FEWEST_ACTIONS <= len(actions) <= MOST_ACTIONS:
            raise PolicyError(
                f"actions must be {FEWEST_ACTIONS} to {MOST_ACTIONS}, got {len(actions)}"
            )
        if not np.isfinite(actions).all():
            raise PolicyError("actions must be finite, got a value that is not")
        low, high = actions.min(axis=0), actions.max(axis=0)
        for i, name in enumerate(self._model.joint_names):
            lower, upper = float(self._model.lower[i]), float(self._model.upper[i])
            if low[i] < lower or high[i] > upper:
                value, limit = (low[i], lower) if low[i] < lower else (high[i], upper)
                raise LimitError(
                    f"the policy would bring {name} to {value:.3f} rad, limit {limit:.3f} rad"
                )
        return actions

    def _joined(self, actions: FloatArray, request: PlanRequest) -> Motion:
        """Return actions as a motion inside limits, from where the robot is, at rest at its end."""
        config, scale = self._config, request.stage.velocity_scale
        limits = self._limits.scaled(
            config.velocity_share * scale,
            config.acceleration_share * scale,
            config.jerk_share * scale,
        )
        times = np.linspace(0.0, (len(actions) - 1) * self._asker.period, len(actions))
        shape = Motion.through(actions, times).uniform_form(config.coefficients)
        longest = shape.duration * config.stretch_limit + 1.0
        return reanchor(shape, request.start, shape.end, limits, longest, config.coefficients)
