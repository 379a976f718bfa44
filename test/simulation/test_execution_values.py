"""An execution value between its two owners: learned by the injector, taken back by the cache."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.invalidation import Invalidation, Scope
from kv_action_router.caching.manager import CacheManager
from kv_action_router.contracts import (
    SLOT,
    DriveSample,
)
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.drives import Drives
from kv_action_router.injection.signals import Inputs
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.shells.injection import execution_update

SHARE = SLOT["derated_share"]


def at(robot: RobotModel, temperature: float) -> Inputs:
    """Return drive feedback: the first drive at a temperature [degC], the others cool."""
    heat = np.full(robot.n, 40.0)
    heat[0] = temperature
    nothing = np.empty(0)
    inputs = Inputs()
    inputs.drives = DriveSample(
        robot.joint_names, heat, nothing, nothing, nothing, nothing, np.empty(0, np.bool_), 0
    )
    return inputs


def test_what_heat_taught_is_stored_and_a_roll_back_is_in_force_at_once() -> None:
    robot, first = RobotModel.load("ur5e"), load_execution_value("ur5e")
    drives = Drives(robot, InjectionConfig(), first)
    manager = CacheManager(CachingConfig(), robot, first)
    for now_ns, temperature in enumerate((75.0, 60.0), 1):
        for event in drives.update(at(robot, temperature), now_ns, 1):
            manager.apply(execution_update(event.execution, event.reason))
    learned = manager.execution_value()
    assert learned is not None
    assert learned.slots[:2, SHARE] == pytest.approx([0.57, 0.6])
    assert "derated_share 0.6 -> 0.57 after heat (not below 0.4)" in learned.provenance

    request = Invalidation(Scope.LAYER, "new fan", layer="execution", entry_id=first.version)
    assert manager.invalidate(request) == robot.n
    inputs = Inputs()
    inputs.execution = manager.execution_value()
    assert drives.update(inputs, 3, 1) == []
    in_force = drives.limits.value
    assert in_force.version == learned.version + 1
    assert in_force.slots[0, SHARE] == first.slots[0, SHARE]
    assert in_force.provenance.startswith("version 1 again: new fan (")
    assert drives.limits.all_confident
