"""Limits of the joints, and how far a motion stays inside them."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import LimitError, RobotModelError

POSITION_SLACK = 1.0e-6  # [rad] rounding of a pose that lies on its limit
RATIO_SLACK = 1.0e-3  # a limit counts as kept up to this share above it, between two checks


class LimitedRobot(Protocol):
    """What limits are read from (``robots.model.RobotModel`` is one)."""

    joint_names: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    velocity_limit: FloatArray
    acceleration_limit: FloatArray
    jerk_limit: FloatArray
    continuous: npt.NDArray[np.bool_]


class Load(NamedTuple):
    """Largest use of the limits over a motion: 1 = on the limit.

    Attributes:
        velocity, acceleration, jerk: share of the limit that the worst joint uses.
        joint: index of the joint that is worst in its worst derivative.
    """

    velocity: float
    acceleration: float
    jerk: float
    joint: int

    @property
    def stretch(self) -> float:
        """By how much the duration must grow to bring all three to 1 (1 / stretch^k each)."""
        return max(self.velocity, math.sqrt(self.acceleration), math.cbrt(self.jerk))


@dataclass(frozen=True, slots=True)
class MotionLimits:
    """Position [rad], velocity, acceleration and jerk limits, each (n,), in the model's order.

    Attributes:
        own: the robot's limits that these are shares of; None = these are the robot's own.

    Raises:
        RobotModelError: naming the joint whose limit is missing, zero, negative or inverted.
    """

    names: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    jerk: FloatArray
    own: MotionLimits | None = dataclasses.field(default=None, repr=False, compare=False)
    _rates: FloatArray = dataclasses.field(
        init=False, repr=False, compare=False
    )  # the last three (3, n)

    def __post_init__(self) -> None:
        shape = (len(self.names),)
        rates = (self.velocity, self.acceleration, self.jerk)
        if any(rate.shape != shape for rate in rates):
            self._refuse()
        table = np.array(rates)
        good = table.min() > 0.0 and table.max() < np.inf  # NaN compares false
        if not good or not (self.lower < self.upper).all():
            self._refuse()
        object.__setattr__(self, "_rates", table)

    def _refuse(self) -> None:
        count = len(self.names)
        for field in ("lower", "upper", "velocity", "acceleration", "jerk"):
            shape = np.shape(getattr(self, field))
            if shape != (count,):
                raise RobotModelError(f"{field} must have {count} values, got shape {shape}")
        for index, name in enumerate(self.names):
            if not self.lower[index] < self.upper[index]:
                raise RobotModelError(
                    f"joint {name!r}: lower limit must be below the upper one,"
                    f" got {self.lower[index]!r} and {self.upper[index]!r}"
                )
            for field in ("velocity", "acceleration", "jerk"):
                value = getattr(self, field)[index]
                if not (value > 0.0 and np.isfinite(value)):
                    raise RobotModelError(
                        f"joint {name!r}: {field} limit must be above 0 and finite, got {value!r}"
                    )

    @classmethod
    def of(cls, model: LimitedRobot) -> MotionLimits:
        """Read them from a robot's model; continuous joints have no position limits."""
        free = np.asarray(model.continuous, dtype=bool)
        return cls(
            names=tuple(model.joint_names),
            lower=np.where(free, -np.inf, model.lower),
            upper=np.where(free, np.inf, model.upper),
            velocity=np.array(model.velocity_limit, dtype=float),
            acceleration=np.array(model.acceleration_limit, dtype=float),
            jerk=np.array(model.jerk_limit, dtype=float),
        )

    def scaled(self, velocity: float, acceleration: float, jerk: float) -> MotionLimits:
        """Return limits that are shares of these."""
        return MotionLimits(
            self.names,
            self.lower,
            self.upper,
            self.velocity * velocity,
            self.acceleration * acceleration,
            self.jerk * jerk,
            self.own or self,
        )

    def including(self, velocity: FloatArray, acceleration: FloatArray) -> MotionLimits:
        """Return limits widened to a state that is already there (of a faster stage before)."""
        return dataclasses.replace(
            self,
            velocity=np.maximum(self.velocity, 1.02 * np.abs(velocity)),
            acceleration=np.maximum(self.acceleration, 1.02 * np.abs(acceleration)),
        )

    def leaving(self, velocity: FloatArray, acceleration: FloatArray) -> MotionLimits:
        """Return limits of a motion that begins in another one.

        It must end what is under way, and that may have used the robot's own acceleration and jerk
        (an arm that brakes): these count then, not the shares that are kept for calm.
        """
        if not acceleration.any():
            return self.including(velocity, acceleration)
        own = self.own or self
        return dataclasses.replace(
            self,
            velocity=np.maximum(self.velocity, 1.1 * np.abs(velocity)),
            acceleration=np.maximum(own.acceleration, 1.05 * np.abs(acceleration)),
            jerk=own.jerk,
        )

    def load(self, velocity: FloatArray, acceleration: FloatArray, jerk: FloatArray) -> Load:
        """Return how much of the limits samples (m, n) use."""
        return self.load_of_peaks(
            np.array([np.abs(rows).max(axis=0) for rows in (velocity, acceleration, jerk)])
        )

    def load_of_peaks(self, peaks: FloatArray) -> Load:
        """Return how much of the limits peaks of velocity, acceleration and jerk (3, n) use."""
        shares = peaks / self._rates
        velocity, acceleration, jerk = worst = shares.max(axis=1).tolist()
        joint = int(shares[worst.index(max(worst))].argmax())
        return Load(velocity, acceleration, jerk, joint)

    def kept_by(self, peaks: FloatArray) -> npt.NDArray[np.bool_]:
        """Say which joints' peaks of velocity, acceleration and jerk (3, n) are inside (n,)."""
        inside = peaks <= self._rates * (1.0 + RATIO_SLACK)
        return np.asarray(inside.all(axis=0))

    def check_positions(self, positions: FloatArray) -> None:
        """Refuse positions (m, n) outside the limits.

        Raises:
            LimitError: naming the joint, its limit and the position.
        """
        self.check_range(positions.min(axis=0), positions.max(axis=0))

    def check_range(self, low: FloatArray, high: FloatArray) -> None:
        """Refuse lowest and highest positions, each (n,), as :meth:`check_positions` does."""
        below = low < self.lower - POSITION_SLACK
        above = high > self.upper + POSITION_SLACK
        if below.any():
            joint = int(below.argmax())
            raise LimitError(
                f"joint {self.names[joint]!r}: position must be at least"
                f" {self.lower[joint]:.4f} rad, got {low[joint]:.4f}"
            )
        if above.any():
            joint = int(above.argmax())
            raise LimitError(
                f"joint {self.names[joint]!r}: position must be at most"
                f" {self.upper[joint]:.4f} rad, got {high[joint]:.4f}"
            )
