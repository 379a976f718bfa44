"""What ``seams.py`` compares methods on: a target that moves, and a policy that sees it.

The policy answers each image with one second of motion: from the joint state that it saw,
critically damped, to the target that it saw. As a learned policy it errs a little in every answer,
and cannot foresee where the target will go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from kv_action_router.contracts import FloatArray

PERIOD = 0.002  # [s] of commands
FRAME = 1.0 / 30.0  # [s] between two decisions
HORIZON = 1.0  # [s] of a decision's motion
HORIZON_TICKS = round(HORIZON / PERIOD)
BANDWIDTH = 10.0  # [rad/s] of the policy's approach
SIGHT_DEVIATION = 0.005  # [rad] of the target as it is seen, anew in each image
ANSWER_DEVIATION = 0.002  # [rad] by which all of an answer is off, anew in each answer
_TIMES: FloatArray = np.arange(HORIZON_TICKS + 1) * PERIOD


class State(NamedTuple):
    """Position [rad] and velocity [rad/s], each (n,)."""

    position: FloatArray
    velocity: FloatArray


class Answer(NamedTuple):
    """One second of motion, a row a tick: position, velocity and acceleration, each (501, n).

    ``born`` is the tick of the image that it answers: row i is meant for tick born + i.
    """

    born: int
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


class Method(Protocol):
    """Makes one stream of commands of answers that overlap."""

    def take(self, answer: Answer, tick: int) -> None:
        """Note an answer that is there from this tick on."""

    def command(self, tick: int) -> State:
        """Return the command of a tick; ticks come one after the other."""


class Target:
    """Joint positions that wander: three sines a joint, 0.1 to 0.6 Hz."""

    def __init__(self, home: FloatArray, generator: np.random.Generator) -> None:
        shape = (3, len(home))
        self._home = home
        self._size = generator.uniform(0.03, 0.10, shape)
        self._rate = 2.0 * np.pi * generator.uniform(0.1, 0.6, shape)
        self._turn = generator.uniform(0.0, 2.0 * np.pi, shape)

    def at(self, time: float) -> FloatArray:
        """Return the target [rad] (n,) at a time [s]."""
        waves: FloatArray = self._size * np.sin(self._rate * time + self._turn)
        position: FloatArray = self._home + waves.sum(axis=0)
        return position


def answer_to(state: State, goal: FloatArray, offset: FloatArray, born: int) -> Answer:
    """Return the critically damped motion from a state to a goal, all of it off by ``offset``.

    x(t) = g + (A + B t) exp(-w t) with A = x0 - g, B = v0 + w A.
    """
    w = BANDWIDTH
    a = state.position - goal
    b = state.velocity + w * a
    t = _TIMES[:, None]
    fade = np.exp(-w * t)
    line = a + b * t
    return Answer(
        born,
        goal + offset + line * fade,
        (b - w * line) * fade,
        (w * w * line - 2.0 * w * b) * fade,
    )


@dataclass(frozen=True, slots=True)
class Course:
    """What came of a run: commands and target, a row a tick (k, n); ticks of the seams."""

    command: FloatArray
    target: FloatArray
    seams: list[int]


def run(
    make: Callable[[FloatArray], Method], home: FloatArray, delay: float, seconds: float, seed: int
) -> Course:
    """Let a method follow the target.

    Args:
        make: of a method that stands at a position (n,).
        home: where it begins [rad] (n,).
        delay: between an image and its answer [s].
        seconds: that the run lasts.
        seed: of target and errors; the same for every method.
    """
    generator = np.random.default_rng(seed)
    target = Target(home, generator)
    method = make(target.at(0.0))
    ticks = round(seconds / PERIOD)
    wait = round(delay / PERIOD)
    images = {round(i * FRAME / PERIOD) for i in range(round(seconds / FRAME))}
    coming: list[Answer] = []
    commands, targets = np.empty((ticks, len(home))), np.empty((ticks, len(home)))
    seams = []
    state = State(target.at(0.0), np.zeros(len(home)))
    for tick in range(ticks):
        targets[tick] = target.at(tick * PERIOD)
        if tick in images:
            seen = targets[tick] + SIGHT_DEVIATION * generator.standard_normal(len(home))
            off = ANSWER_DEVIATION * generator.standard_normal(len(home))
            coming.append(answer_to(state, seen, off, tick))
        if coming and coming[0].born + wait <= tick:
            method.take(coming.pop(0), tick)
            seams.append(tick)
        state = method.command(tick)
        commands[tick] = state.position
    return Course(commands, targets, seams)
