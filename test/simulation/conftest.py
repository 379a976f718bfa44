"""A plant without noise, stepped on a clock of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.plant import Plant
from kv_action_router.simulation.truth import Contact

sys.path.insert(0, str(Path(__file__).parent))  # the tests import their builders


class SteppedPlant:
    """A plant and the steady clock that its drives see."""

    def __init__(self, robot: RobotModel, **parameters: object) -> None:
        self.config = SimulationConfig(**parameters)
        self.robot = robot
        self.plant = Plant(self.config, robot.home, robot.velocity_limit)
        self.drives = self.plant.drives
        self.now_ns = 1_000_000_000
        self.contacts: list[Contact] = []

    def run(self, seconds: float, command: Callable[[int], None] | None = None) -> None:
        """Step for a time; ``command(now_ns)`` comes before each step."""
        for _ in range(round(seconds / self.plant.dt)):
            self.now_ns += round(self.plant.dt * 1e9)
            if command is not None:
                command(self.now_ns)
            contact = self.plant.step(self.now_ns)
            if contact is not None:
                self.contacts.append(contact)

    def gravity(self) -> np.ndarray:
        """Torque against gravity at the present pose [N m] (n,)."""
        return self.robot.gravity_torque(np.array(self.plant.position))


@pytest.fixture(scope="session")
def robot() -> RobotModel:
    """The UR5e."""
    return RobotModel.load("ur5e")


@pytest.fixture
def stepped(robot: RobotModel) -> SteppedPlant:
    """A fresh plant at home, braked."""
    return SteppedPlant(robot)


@pytest.fixture
def make_stepped(robot: RobotModel) -> Callable[..., SteppedPlant]:
    """Build a plant with parameters."""
    return lambda **parameters: SteppedPlant(robot, **parameters)


@pytest.fixture(scope="module")
def shared(robot: RobotModel) -> SteppedPlant:
    """One plant for all tests of a module that set its state themselves."""
    return SteppedPlant(robot)
