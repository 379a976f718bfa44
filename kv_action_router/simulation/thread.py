"""A screw in its thread: turn and advance are one motion, and seating brings force and friction.

What is not of geometry is the usual short form of bolted joints: the friction torque of thread and
head is the nut factor times diameter times clamping force (T = K d F), the clamping force is the
advance past the seat times the joint's stiffness.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kv_action_router.configuration import Configuration, parameter


@dataclass(frozen=True)
class ThreadConfig(Configuration):
    """A screw and its hole; the defaults are an M3 screw of steel in steel.

    Past some 1.3 N m a real M3 screw of class 8.8 yields. This one does not: it bears whatever the
    demonstration asks for.
    """

    pitch: float = parameter(5.0e-4, "advance a turn", unit="m", minimum=1.0e-5, maximum=0.01)
    travel: float = parameter(
        2.5e-3, "advance at which the head seats", unit="m", minimum=0.0, maximum=0.1
    )
    running_torque: float = parameter(
        0.02, "torque that turns it before it seats", unit="N m", minimum=0.0, maximum=10.0
    )
    nut_factor: float = parameter(
        0.2, "friction torque over diameter and clamping force", minimum=0.01, maximum=1.0
    )
    diameter: float = parameter(0.003, "nominal diameter", unit="m", minimum=1.0e-4, maximum=0.1)
    stiffness: float = parameter(
        7.0e7,
        "clamping force over advance past the seat",
        unit="N/m",
        minimum=1.0e3,
        maximum=1.0e10,
    )


class Thread:
    """One screw.

    Invariant: ``advance`` is ``pitch`` times the turns; a screw is never turned out further than it
    stood at first.

    Attributes:
        angle: turned since it stood at first, tightening counts up [rad].
    """

    def __init__(self, config: ThreadConfig) -> None:
        self.config = config
        self.angle = 0.0

    @property
    def turns(self) -> float:
        """Turned since it stood at first."""
        return self.angle / math.tau

    @property
    def advance(self) -> float:
        """How far it has gone in [m]."""
        return self.config.pitch * self.turns

    @property
    def seating_force(self) -> float:
        """Force between head and seat [N]."""
        return self.config.stiffness * max(0.0, self.advance - self.config.travel)

    @property
    def friction_torque(self) -> float:
        """Torque that must be exceeded to turn it, either way [N m]."""
        config = self.config
        return config.running_torque + config.nut_factor * config.diameter * self.seating_force

    def turn(self, angle: float) -> None:
        """Turn it by an angle [rad]; one that is not finite changes nothing."""
        if math.isfinite(angle):
            self.angle = max(0.0, self.angle + angle)
