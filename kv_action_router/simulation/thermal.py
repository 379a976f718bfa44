"""Warming of the drives' windings: first order, driven by the losses in the resistance.

    C dT/dt = R(T) I^2 - (T - T_ambient) / R_th,   R(T) = R_25 (1 + alpha (T - 25))

In terms of what a data sheet gives, the rise at rated current with a winding of 25 degC and the
time constant without losses, this is linear in T, so each step is its exact solution: stable for
any step, monotone toward the final temperature, and never beyond it.
"""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import ConfigError

_REFERENCE = 25.0  # [degC] at which winding resistances are given


class ThermalModel:
    """Temperature of n windings.

    Invariant: with currents up to ``rated_current`` the temperature stays between ambient (or where
    it began) and :meth:`final_temperature` of the rated current.
    """

    def __init__(
        self,
        rated_current: FloatArray,
        initial: FloatArray,
        *,
        ambient: float,
        rated_rise: float,
        time_constant: float,
        temperature_coefficient: float,
    ) -> None:
        """Start at given temperatures.

        Args:
            rated_current: [A] (n,).
            initial: temperatures at start [degC] (n,).
            ambient: [degC].
            rated_rise: final warming at rated current, were the resistance that of 25 degC [K].
            time_constant: of cooling without current [s].
            temperature_coefficient: of the resistance [1/K].

        Raises:
            ConfigError: a runaway: the resistance grows faster than heat leaves.
        """
        if temperature_coefficient * rated_rise >= 1.0:
            limit = f"below {1.0 / temperature_coefficient:.0f} K (thermal runaway)"
            raise ConfigError("rated_temperature_rise", limit, rated_rise)
        self._ambient = ambient
        self._time_constant = time_constant
        # Warming by a squared current of 1 A^2: at ambient [K], and its growth per kelvin.
        at_ambient = 1.0 + temperature_coefficient * (ambient - _REFERENCE)
        rise: FloatArray = rated_rise / np.square(np.asarray(rated_current, float))
        self._rise = rise * at_ambient
        self._slope = rise * temperature_coefficient
        self.temperature: FloatArray = np.array(initial, float)

    def final_temperature(self, current: FloatArray) -> FloatArray:
        """Return where constant currents [A] (n,) end [degC] (n,)."""
        square = np.square(current)
        final: FloatArray = self._ambient + square * self._rise / (1.0 - square * self._slope)
        return final

    def step(self, mean_square_current: FloatArray, duration: float) -> None:
        """Advance by ``duration`` [s] under mean squared currents [A^2] (n,)."""
        damping = 1.0 - mean_square_current * self._slope
        final = self._ambient + mean_square_current * self._rise / damping
        way = np.expm1(damping * (-duration / self._time_constant))
        self.temperature += (self.temperature - final) * way
