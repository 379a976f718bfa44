"""What age does to the drives: less torque for a current, more friction, more resistance.

The share of the torque constant that is left falls exponentially, as magnets lose their remanence;
friction of the gears and resistance of windings and contacts grow in proportion to the hours.
Drives of one make do not age alike: each has its own pace, between two thirds and four thirds.

The winding itself is that of the axis that makes torque: U = R(T) I + k w, with the torque
constant k, which is the constant of the back-EMF too, and R(T) = R (1 + alpha (T - 25)).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kv_action_router.contracts import FloatArray

REFERENCE_TEMPERATURE = 25.0  # [degC] at which winding resistances are given
_PACE = 1.0 / 3.0  # of the slowest below, and of the fastest above, the mean


class Wear:
    """Age of n drives, and what it has made of them.

    Attributes:
        hours: of age.
        torque_share: of the torque constant that is left (n,).
        friction: over that of a new drive (n,).
        resistance: over that of a new winding (n,).
    """

    def __init__(
        self,
        torque_constant: FloatArray,
        resistance: FloatArray,
        temperature_coefficient: float,
        *,
        torque_loss: float,
        friction_rise: float,
        resistance_rise: float,
    ) -> None:
        """Begin with new drives.

        Args:
            torque_constant: of new drives at the joint [N m/A] (n,).
            resistance: of new windings at 25 degC [ohm] (n,).
            temperature_coefficient: of the resistance [1/K].
            torque_loss: share of the torque constant that is lost in an hour [1/h].
            friction_rise: of the friction, in shares of a new drive's [1/h].
            resistance_rise: of the resistance, in shares of a new winding's [1/h].
        """
        size = len(torque_constant)
        pace: FloatArray = np.linspace(1.0 - _PACE, 1.0 + _PACE, size) if size > 1 else np.ones(1)
        # Neighbors differ, and neither end of the arm is the worse one.
        self._pace = pace[np.argsort(np.arange(size) % 2, kind="stable")]
        self._constant = np.array(torque_constant, float)
        self._resistance = np.array(resistance, float)
        self._coefficient = temperature_coefficient
        self._rates = (torque_loss, friction_rise, resistance_rise)
        self.hours = 0.0
        self.torque_share: FloatArray = np.ones(size)
        self.friction: FloatArray = np.ones(size)
        self.resistance: FloatArray = np.ones(size)
        self._shares: list[float] | None = None  # None = new

    @property
    def torque_constant(self) -> FloatArray:
        """True torque constant at the joint [N m/A] (n,)."""
        return self._constant * self.torque_share

    @property
    def winding_resistance(self) -> FloatArray:
        """True resistance at 25 degC [ohm] (n,)."""
        return self._resistance * self.resistance

    def grow(self, hours: float) -> None:
        """Let the drives be ``hours`` old."""
        torque_loss, friction_rise, resistance_rise = self._rates
        aged = hours * self._pace
        self.hours = hours
        self.torque_share = np.exp(-torque_loss * aged)
        self.friction = 1.0 + friction_rise * aged
        self.resistance = 1.0 + resistance_rise * aged
        self._shares = self.torque_share.tolist() if hours > 0.0 else None

    def torque(self, asked: Sequence[float]) -> Sequence[float]:
        """Return what the drives give [N m] (n,) when they give the current of a torque (n,)."""
        if self._shares is None:  # the usual case
            return asked
        return [value * share for value, share in zip(asked, self._shares, strict=True)]

    def voltage(
        self, current: FloatArray, temperature: FloatArray, velocity: FloatArray
    ) -> FloatArray:
        """Return the voltage at each winding [V] (n,).

        Args:
            current: signed [A] (n,).
            temperature: of the windings [degC] (n,).
            velocity: of the joints [rad/s] (n,).
        """
        warm = 1.0 + self._coefficient * (temperature - REFERENCE_TEMPERATURE)
        voltage: FloatArray = (
            self.winding_resistance * warm * current + self.torque_constant * velocity
        )
        return voltage
