"""What a fit must show before it may change a drive's value."""

from __future__ import annotations

from dataclasses import dataclass

FEWEST_ROWS = 100  # in which the joint moves
FRICTION_SPEED = 0.05  # [rad/s] from which on friction is that of motion
LEAST_CURRENT = 0.05  # root mean square of the current, in shares of the rated one
LEAST_TORQUE = 0.05  # spread of the torque that the model predicts, in shares of the rated one
LEAST_WARMING = 8.0  # [K] spread of the temperature that tells the coefficient
LARGEST_ERROR = 0.01  # standard error of the torque constant, in shares of it
LARGEST_RESISTANCE_ERROR = 0.02  # of the resistance, likewise
LARGEST_RESIDUAL = 0.02  # of the torque, in shares of the rated one
LARGEST_SAG = 0.05  # residual of the voltage, in shares of that at rated current and standstill
FEWEST_INLIERS = 0.85  # share of rows
LARGEST_DISAGREEMENT = 0.10  # of torque constant and back-EMF
RESISTANCE_BAND = (0.5, 2.0)  # of the resistance in force
COEFFICIENT_BAND = (0.003, 0.005)  # [1/K] copper has 0.0039, aluminum 0.0041
FRICTION_BAND = (0.0, 0.2)  # of the rated torque: Coulomb friction, and viscous at 1 rad/s
# Share that a slot must change by before another value is worth it: above what two fits of the
# same drive differ by.
NEWS = {
    "torque_constant": 0.005,
    "winding_resistance": 0.01,
    "temperature_coefficient": 0.05,
    "coulomb_friction": 0.1,
    "viscous_friction": 0.1,
}
UNITS = {
    "torque_constant": "N m/A",
    "winding_resistance": "ohm",
    "temperature_coefficient": "1/K",
    "coulomb_friction": "N m",
    "viscous_friction": "N m s/rad",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why something was not taken over.

    Attributes:
        what: was judged, for people.
        value: that it came to.
        limit: that it should have kept, for people.
    """

    what: str
    value: float
    limit: str

    def __str__(self) -> str:
        return f"{self.what} {self.value:.4g} ({self.limit})"


def at_least(what: str, value: float, limit: float, unit: str = "") -> list[Refusal]:
    """Return a refusal of a value below its limit; NaN is one too."""
    if value >= limit:
        return []
    return [Refusal(what, value, f"limit: at least {limit:g} {unit}".rstrip())]


def at_most(what: str, value: float, limit: float, unit: str = "") -> list[Refusal]:
    """Return a refusal of a value above its limit; NaN is one too."""
    if value <= limit:
        return []
    return [Refusal(what, value, f"limit: at most {limit:.4g} {unit}".rstrip())]


def inside(
    what: str, value: float, band: tuple[float, float], scale: float = 1.0, unit: str = ""
) -> list[Refusal]:
    """Return a refusal of a value outside a band times a scale; NaN is one too."""
    low, high = band[0] * scale, band[1] * scale
    if low <= value <= high:
        return []
    return [Refusal(what, value, f"limit: {low:.4g} to {high:.4g} {unit}".rstrip())]
