"""Policies for tests, made in processes of their own."""

from __future__ import annotations

import os
import time

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.synthesis.policy import Observation


class Straight:
    """Moves all joints by a tenth of a radian in a second."""

    period = 0.1

    def __init__(self, thinks: float = 0.0) -> None:
        self._thinks = thinks

    def act(self, observation: Observation) -> FloatArray:
        time.sleep(self._thinks)  # what a slow policy is made of
        share = np.linspace(0.0, 1.0, 11)[:, None]
        way: FloatArray = observation.position + 0.1 * share * share * (3.0 - 2.0 * share)
        return way


class Failing(Straight):
    """Fails, or dies, by the stage's name."""

    def act(self, observation: Observation) -> FloatArray:
        if observation.stage == "die":
            os._exit(3)
        raise RuntimeError("no idea")


def straight() -> Straight:
    return Straight()


def slow() -> Straight:
    return Straight(thinks=0.3)


def failing() -> Failing:
    return Failing()


def broken() -> Straight:
    raise ValueError("no weights")


def none() -> object:
    return object()
