"""What a policy is told, what it answers, and who runs it: kept light, for its own process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kv_action_router.contracts import FloatArray, Pose


@dataclass(frozen=True, slots=True)
class Observation:
    """What a policy is told.

    Attributes:
        stage: name of the stage that asks.
        position, velocity: of the joints, in the model's order [rad], [rad/s] (n,).
        target: perceived pose in the base frame; None = none is seen, or the stage needs none.
        obstacles: spheres x, y, z, r in the base frame [m] (k, 4).
    """

    stage: str
    position: FloatArray
    velocity: FloatArray
    target: Pose | None
    obstacles: FloatArray


class ChunkPolicy(Protocol):
    """Any module that gives action chunks, e.g. a network in torch. It may be slow.

    Attributes:
        period: time from one action to the next [s].
    """

    period: float

    def act(self, observation: Observation) -> FloatArray:
        """Return joint positions [rad] (h, n) that bring the robot to the stage's goal."""


class Asker(Protocol):
    """Runs a policy beside the synthesizer. One question is open at a time, the newest.

    Attributes:
        period: of the policy's actions [s].
    """

    period: float

    def ask(self, observation: Observation) -> None:
        """Put a question; an older one is forgotten. Returns at once."""

    def answer(self) -> FloatArray | None:
        """Return the actions of the newest question once they are there, else None, at once.

        Raises:
            PolicyError: the policy failed.
        """
