"""What the effort law feeds forward between two predictions is wrong by a bounded torque."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.effort_law import (
    SAME_ACCELERATION,
    SAME_POSITION,
    SAME_VELOCITY,
    EffortLaw,
    State,
)
from kv_action_router.injection.execution_table import ExecutionTable, Snapshot
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel

BOUND = 0.08  # [N m] as the law's docstring says
SPEED = 1.0  # [rad/s] norm of all joints up to which it holds
ACCELERATION = 3.0  # [rad/s^2] norm


@pytest.fixture(scope="module")
def model() -> RobotModel:
    return RobotModel.load("ur5e")


@pytest.fixture(scope="module")
def limits(model: RobotModel) -> Snapshot:
    return ExecutionTable(model, load_execution_value("ur5e")).current


def of_length(generator: np.random.Generator, length: float) -> np.ndarray:
    vector = generator.standard_normal(6)
    return vector * (length / np.linalg.norm(vector))


def test_a_kept_prediction_is_wrong_by_less_than_the_bound(model: RobotModel) -> None:
    generator = np.random.default_rng(7)
    lower, upper = np.maximum(model.lower, -np.pi), np.minimum(model.upper, np.pi)
    worst = 0.0
    for _ in range(3000):
        q = generator.uniform(lower, upper)
        v = of_length(generator, SPEED * generator.uniform())
        a = of_length(generator, ACCELERATION * generator.uniform())
        exact = model.inverse_dynamics(q, v, a).copy()
        q += of_length(generator, SAME_POSITION)
        v += of_length(generator, SAME_VELOCITY)
        a += of_length(generator, SAME_ACCELERATION)
        worst = max(worst, float(np.abs(model.inverse_dynamics(q, v, a) - exact).max()))
    assert 0.0 < worst < BOUND


class Counted:
    """A model that counts predictions."""

    def __init__(self, model: RobotModel) -> None:
        self._model = model
        self.predictions = 0

    def __getattr__(self, name: str):
        return getattr(self._model, name)

    def inverse_dynamics(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        self.predictions += 1
        return self._model.inverse_dynamics(q, v, a)


def test_the_torque_is_predicted_anew_when_the_arm_has_gone_on(
    model: RobotModel, limits: Snapshot
) -> None:
    counted = Counted(model)
    law, output = EffortLaw(counted), [0.0] * 6
    q = [float(x) for x in model.home]
    reference = State(q, [0.0] * 6, [0.0] * 6)
    measured = State(list(q), [0.0] * 6, [0.0] * 6)

    def tick(by: Snapshot = limits) -> int:
        law.compute(InjectionConfig().period_ns * 1e-9, reference, measured, by, 1.0, output)
        return counted.predictions

    assert [tick(), tick()] == [1, 1]
    measured.position[1] += 0.9 * SAME_POSITION  # type: ignore[index]
    assert tick() == 1
    measured.position[1] += 0.2 * SAME_POSITION  # type: ignore[index]  # seen from the first one
    assert tick() == 2
    reference.velocity[2] = 1.1 * SAME_VELOCITY  # type: ignore[index]
    assert tick() == 3
    reference.acceleration[2] = 1.1 * SAME_ACCELERATION  # type: ignore[index]
    assert tick() == 4
    other = ExecutionTable(model, load_execution_value("ur5e")).current
    assert [tick(other), tick(other)] == [5, 5]
    assert (
        law.feed_forward[:2]
        == model.inverse_dynamics(
            np.array(measured.position),
            np.array(reference.velocity),
            np.array(reference.acceleration),
        )[:2].tolist()
    )


def test_friction_follows_every_tick(model: RobotModel, limits: Snapshot) -> None:
    law, output = EffortLaw(model), [0.0] * 6
    q = model.home.tolist()
    fed = []
    for speed in (0.0, 0.5 * SAME_VELOCITY):
        reference = State(q, [speed] + [0.0] * 5, [0.0] * 6)
        law.compute(0.002, reference, State(q, [0.0] * 6, [0.0] * 6), limits, 1.0, output)
        fed.append(law.feed_forward[0])
    friction = limits.viscous_friction[0] * speed + limits.coulomb_friction[0] * np.tanh(
        speed / limits.friction_velocity[0]
    )
    assert fed[1] - fed[0] == pytest.approx(friction, abs=1e-12)
    assert friction > 0.0
