"""Fixtures of the synthesis tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.clearance import Clearance
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.replan import ReplanSource
from kv_action_router.tasks.definition import load_task
from kv_action_router.tasks.stages import TaskDefinition

threadpool_limits(1)  # as the node does: small products, no spikes
sys.path.insert(0, str(Path(__file__).parent))

from synthesis_rig import Rig  # noqa: E402 - its folder is put on the path above


@pytest.fixture(scope="session")
def model() -> RobotModel:
    """Load the robot that the task is for."""
    return RobotModel.load("ur5e")


@pytest.fixture(scope="session")
def config() -> SynthesisConfig:
    """Parameters as they come."""
    return SynthesisConfig()


@pytest.fixture(scope="session")
def source(model: RobotModel, config: SynthesisConfig) -> ReplanSource:
    """Make the planner, with its collision test."""
    return ReplanSource(model, config, Clearance(model, config))


@pytest.fixture(scope="session")
def task() -> TaskDefinition:
    """Load the task that comes with the package."""
    return load_task("touch_target")


@pytest.fixture
def rig(model: RobotModel, config: SynthesisConfig) -> Rig:
    """Pretend robot, injector and cache."""
    return Rig(model, config)
