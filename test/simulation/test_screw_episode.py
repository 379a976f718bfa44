"""One screw, from the approach to the retreat, by all five stages in one process."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.contracts import SLOT
from kv_action_router.simulation.config import screw_cell
from kv_action_router.simulation.episode import Episode, EpisodeConfig
from kv_action_router.simulation.sight import true_target

TORQUE = 3.5  # [N m] of the task's last stage
SEAT = 2.5e-3  # [m]


@pytest.fixture(scope="module")
def episode() -> Episode:
    config = EpisodeConfig(task="tighten_m3_screw", simulation=screw_cell(camera_rate=10))
    return Episode(true_target, config)


def test_a_screw_is_found_and_tightened_to_the_commanded_torque(episode: Episode) -> None:
    cycle = episode.touch()
    assert cycle.success, cycle.reason
    assert cycle.final_torque == pytest.approx(TORQUE, rel=0.10)
    assert cycle.advance == pytest.approx(SEAT, abs=2e-4)
    assert 0.0 < cycle.search < 0.030
    assert cycle.peak_force < 30.0
    assert list(cycle.stages) == [stage.name for stage in episode.task.stages]
    assert cycle.events == cycle.reports == episode.caching.refused == []
    assert cycle.false_hits == 0


def test_what_stages_asked_for_is_taken_back(episode: Episode) -> None:
    in_force = episode.injection.controller.drives.limits.value
    durable = episode.caching.manager.execution.durable("ur5e")
    begun = episode.caching.manager.execution.value("ur5e")
    assert begun is not None
    assert durable is not None
    assert in_force.version > 5  # stages that asked
    np.testing.assert_array_equal(in_force.slots, durable.slots)
    assert in_force.slots[6, SLOT["stage_effort_limit"]] == np.float32(0.2)
    assert (in_force.slots[:6, SLOT["integral_gain"]] > 0.0).all()
