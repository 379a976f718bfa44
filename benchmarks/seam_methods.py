"""Ways to make one stream of commands of decisions that overlap: ours and those of the literature.

| method | as published |
|---|---|
| per-frame re-decision | no motion is kept: what the newest answer says first is done, from when it is there to the next one |
| latest only | the newest answer, from its row for the present tick on (LeRobot's asynchronous inference, aggregate function ``latest_only``); without a delay the same as the row above |
| weighted blending | where answers overlap, 0.3 of what was planned and 0.7 of the newest answer (LeRobot, ``weighted_average``) |
| temporal ensembling | all answers that cover the tick, with weights exp(-0.01 i), i = 0 for the oldest (Zhao et al., "Learning Fine-Grained Bimanual Manipulation with Low-Cost Hardware", 2023) |
| cubic interpolation | from the last command's position and velocity a cubic polynomial onto the newest answer 100 ms later, then that answer |
| ours | the answer is joined to the reference in position, velocity and acceleration, inside limits, and played by the injector's set-point |

All play the same rows: none is made worse by a coarser grid than another's.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections import deque

import numpy as np
from seam_scene import HORIZON_TICKS, PERIOD, Answer, State

from kv_action_router.contracts import ChunkKind, Decision, FloatArray
from kv_action_router.injection.chunk_table import ChunkChecker
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.drives import Drives
from kv_action_router.injection.set_point import SetPoint
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.basis import basis
from kv_action_router.synthesis.chunk import ChunkMaker
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.limits import MotionLimits
from kv_action_router.synthesis.reanchor import merged
from kv_action_router.synthesis.reference import Reference
from kv_action_router.synthesis.spline import Motion, MotionState, fit_motion

OLD_SHARE, NEW_SHARE = 0.3, 0.7
ENSEMBLE_DECAY = 0.01
BRIDGE = 0.1  # [s]
TICK_NS = round(PERIOD * 1e9)
CONTINUATION_TICKS = 10  # 20 ms
COEFFICIENTS = 60  # of an answer: a span is 18 ms


class LatestOnly:
    """The newest answer, entered where it is due."""

    def __init__(self, home: FloatArray) -> None:
        self._answer: Answer | None = None
        self._home = State(home, np.zeros(len(home)))

    def take(self, answer: Answer, tick: int) -> None:
        """Forget the answer before."""
        self._answer = answer

    def command(self, tick: int) -> State:
        """Return the newest answer's row."""
        answer = self._answer
        if answer is None:
            return self._home
        row = min(tick - answer.born, HORIZON_TICKS)
        return State(answer.position[row], answer.velocity[row])


class PerFrame(LatestOnly):
    """The newest answer, from its beginning."""

    def take(self, answer: Answer, tick: int) -> None:
        """Begin with an answer."""
        super().take(Answer(tick, *answer[1:]), tick)


class WeightedBlending:
    """A plan of rows to come; each answer is mixed into those that it covers as well."""

    def __init__(self, home: FloatArray) -> None:
        self._home = State(home, np.zeros(len(home)))
        self._plan: deque[tuple[FloatArray, FloatArray]] = deque()  # from the present tick on

    def take(self, answer: Answer, tick: int) -> None:
        """Mix an answer in."""
        first = tick - answer.born
        plan: deque[tuple[FloatArray, FloatArray]] = deque()
        for row in range(first, HORIZON_TICKS + 1):
            new = (answer.position[row], answer.velocity[row])
            if self._plan:
                old = self._plan.popleft()
                new = (
                    OLD_SHARE * old[0] + NEW_SHARE * new[0],
                    OLD_SHARE * old[1] + NEW_SHARE * new[1],
                )
            plan.append(new)
        self._plan = plan

    def command(self, tick: int) -> State:
        """Return the plan's next row."""
        if self._plan:
            self._home = State(*self._plan.popleft())
        return self._home


class TemporalEnsembling:
    """Weighted mean of all answers that cover a tick."""

    def __init__(self, home: FloatArray) -> None:
        self._home = State(home, np.zeros(len(home)))
        self._answers: deque[Answer] = deque()

    def take(self, answer: Answer, tick: int) -> None:
        """Keep an answer for as long as it covers what comes; one ends where one begins."""
        answers = self._answers
        while answers and tick - answers[0].born >= HORIZON_TICKS - 1:
            answers.popleft()
        answers.append(answer)

    def command(self, tick: int) -> State:
        """Return the mean of a tick."""
        answers = self._answers
        if not answers:
            return self._home
        weights = np.exp(-ENSEMBLE_DECAY * np.arange(len(answers)))
        weights /= weights.sum()
        rows = [min(tick - answer.born, HORIZON_TICKS) for answer in answers]
        return State(
            weights @ [answer.position[row] for answer, row in zip(answers, rows, strict=True)],
            weights @ [answer.velocity[row] for answer, row in zip(answers, rows, strict=True)],
        )


class CubicInterpolation:
    """A cubic Hermite polynomial from the last command onto the newest answer."""

    def __init__(self, home: FloatArray) -> None:
        self._state = State(home, np.zeros(len(home)))
        self._from = self._state
        self._begun = 0
        self._answer: Answer | None = None

    def take(self, answer: Answer, tick: int) -> None:
        """Begin a bridge at the last command."""
        self._from, self._begun, self._answer = self._state, tick - 1, answer

    def command(self, tick: int) -> State:
        """Return the bridge, or the answer behind it."""
        answer = self._answer
        if answer is None:
            return self._state
        s = (tick - self._begun) * PERIOD / BRIDGE
        if s >= 1.0:
            row = min(tick - answer.born, HORIZON_TICKS)
            self._state = State(answer.position[row], answer.velocity[row])
            return self._state
        row = min(self._begun + round(BRIDGE / PERIOD) - answer.born, HORIZON_TICKS)
        p0, v0 = self._from
        p1, v1 = answer.position[row], answer.velocity[row]
        h1, r = s * s * (3.0 - 2.0 * s), 1.0 - s
        position = (1.0 - h1) * p0 + h1 * p1 + BRIDGE * s * r * (r * v0 - s * v1)
        velocity = 6.0 * s * r * (p1 - p0) / BRIDGE
        velocity += (1.0 - 4.0 * s + 3.0 * s * s) * v0 + (3.0 * s * s - 2.0 * s) * v1
        self._state = State(position, velocity)
        return self._state


class Ours:
    """Stages 3 and 4 without their deadlines: reference, chunks, set-point."""

    def __init__(self, home: FloatArray, model: RobotModel) -> None:
        config = InjectionConfig()
        self._size = COEFFICIENTS
        self._stretch = SynthesisConfig().stretch_limit
        self._limits = MotionLimits.of(model)
        self._chunks = ChunkMaker(model.joint_names)
        self._checker = ChunkChecker(model)
        self._drives = Drives(model, config, load_execution_value(model.name)).limits
        self._set_point = SetPoint(model, config)
        self._set_point.start(0, home.tolist(), [0.0] * model.n, self._drives)
        self._reference: Reference | None = None
        self._sent = 0
        self._home = home

    def take(self, answer: Answer, tick: int) -> None:
        """Join what is left of an answer to the reference."""
        now_ns = tick * TICK_NS
        row = tick - answer.born
        length = (HORIZON_TICKS - row) * PERIOD
        rows = row + basis(self._size).samples * (HORIZON_TICKS - row)
        low = np.minimum(rows.astype(int), HORIZON_TICKS - 1)
        share = (rows - low)[:, None]
        positions = answer.position[low] + share * (answer.position[low + 1] - answer.position[low])
        motion = fit_motion(
            positions,
            MotionState(answer.position[row], answer.velocity[row], answer.acceleration[row]),
            MotionState(answer.position[-1], answer.velocity[-1], answer.acceleration[-1]),
            length,
            self._size,
        )
        self._follow(self._joined(motion, now_ns), now_ns)
        self._send(tick)

    def _joined(self, motion: Motion, now_ns: int) -> Motion:
        reference = self._reference
        state = MotionState.at_rest(self._home) if reference is None else reference.state(now_ns)
        longest = motion.duration * self._stretch
        return merged(motion, state, self._limits, longest, self._size)

    def _follow(self, motion: Motion, now_ns: int) -> None:
        self._reference = Reference(motion, now_ns)

    def _send(self, tick: int) -> None:
        reference = self._reference
        assert reference is not None
        chunk = self._chunks.make(
            reference, tick * TICK_NS, Decision(), ChunkKind.CONTINUATION, phase=0.0
        )
        self._set_point.follow(self._checker.check(chunk, self._drives), self._drives)
        self._sent = tick

    def command(self, tick: int) -> State:
        """Return the injector's set-point."""
        if self._reference is not None and tick - self._sent >= CONTINUATION_TICKS:
            self._send(tick)
        self._set_point.advance(tick * TICK_NS, self._drives)
        return State(np.array(self._set_point.position), np.array(self._set_point.velocity))
