"""Rows that an arm with known drives would have produced."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kv_action_router.contracts import SLOT, ExecutionValue
from kv_action_router.monitoring.calibration.rows import Column
from kv_action_router.robots.model import RobotModel


@dataclass
class Truth:
    """Shares of what the execution value says, one a joint or for all."""

    constant: float | np.ndarray = 1.0
    friction: float | np.ndarray = 1.0
    resistance: float | np.ndarray = 1.0
    payload: float = 0.0  # share by which gravity and inertia are more than the model's
    temperatures: tuple[float, float] = (30.0, 45.0)
    current_noise: float = 0.02
    voltage_noise: float = 0.02
    standing: tuple[int, ...] = field(default_factory=tuple)  # joints


def slot(value: ExecutionValue, name: str) -> np.ndarray:
    return value.slots[:, SLOT[name]].astype(float)


def make_rows(
    robot: RobotModel, value: ExecutionValue, truth: Truth, count: int = 400, seed: int = 1
) -> np.ndarray:
    """Return rows (count, len(Column), n) of smooth motions about the arm's home."""
    generator = np.random.default_rng(seed)
    rows = np.empty((count, len(Column), robot.n))
    low, high = truth.temperatures
    constant = slot(value, "torque_constant") * truth.constant
    for row, warmth in zip(rows, np.linspace(0.0, 1.0, count), strict=True):
        position = robot.home + generator.uniform(-0.5, 0.5, robot.n)
        velocity = generator.uniform(-0.6, 0.6, robot.n)
        acceleration = generator.uniform(-1.5, 1.5, robot.n)
        for joint in truth.standing:
            velocity[joint] = acceleration[joint] = 0.0
        torque = robot.inverse_dynamics(position, velocity, acceleration) * (1.0 + truth.payload)
        turned = np.tanh(velocity / slot(value, "friction_velocity"))
        torque = torque + truth.friction * (
            slot(value, "coulomb_friction") * turned + slot(value, "viscous_friction") * velocity
        )
        current = torque / constant
        temperature = np.full(robot.n, low + warmth * (high - low))
        warm = 1.0 + slot(value, "temperature_coefficient") * (temperature - 25.0)
        resistance = slot(value, "winding_resistance") * truth.resistance * warm
        row[Column.POSITION], row[Column.VELOCITY] = position, velocity
        row[Column.ACCELERATION], row[Column.TEMPERATURE] = acceleration, temperature
        row[Column.VOLTAGE] = resistance * current + constant * velocity
        row[Column.CURRENT] = current
        row[Column.VOLTAGE] += truth.voltage_noise * generator.standard_normal(robot.n)
        row[Column.CURRENT] += truth.current_noise * generator.standard_normal(robot.n)
    return rows
