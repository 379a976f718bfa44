"""One screw, from the approach to the retreat, by all five stages in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kv_action_router.contracts import (
    SLOT,
    CacheMatch,
    ExecutionFeedback,
    ObstacleSpheres,
    StageCondition,
    TrajectoryChunk,
)
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.config import screw_cell
from kv_action_router.simulation.episode import Episode, EpisodeConfig
from kv_action_router.simulation.shells.synthesis import Synthesis
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


class LateSynthesis:
    """The synthesis of a process that does not get the processor for 50 to 110 ms at a time.

    Some chunks are lost besides, and conditions come late.
    """

    def __init__(self, real: Synthesis) -> None:
        self._real = real
        self._generator = np.random.default_rng(3)
        self._from_ns = self._until_ns = 0
        self._waiting: list[tuple[int, StageCondition]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __call__(self, match: CacheMatch | None, samples: Samples) -> TrajectoryChunk | None:
        draw, now_ns = self._generator, samples.now_ns
        if now_ns >= self._from_ns:
            self._until_ns = now_ns + int(draw.uniform(50e6, 110e6))
            self._from_ns = self._until_ns + int(draw.exponential(0.5e9))
        if now_ns < self._until_ns:
            return None
        chunk = self._real(match, samples)
        return None if chunk is not None and draw.uniform() < 0.05 else chunk

    def hear(
        self,
        feedback: ExecutionFeedback | None,
        conditions: Sequence[StageCondition],
        obstacles: ObstacleSpheres | None,
        now_ns: int,
    ) -> None:
        late_ns = int(self._generator.uniform(0.0, 80e6))
        self._waiting += [(now_ns + late_ns, condition) for condition in conditions]
        if now_ns < self._until_ns:
            self._real.hear(None, [], None, now_ns)
            return
        due = [condition for at_ns, condition in self._waiting if at_ns <= now_ns]
        self._waiting = [item for item in self._waiting if item[0] > now_ns]
        self._real.hear(feedback, due, obstacles, now_ns)


def test_a_screw_is_driven_though_decisions_come_late_and_chunks_are_lost(
    episode: Episode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(episode, "synthesis", LateSynthesis(episode.synthesis))
    cycle = episode.touch()
    assert cycle.success, cycle.reason
    assert cycle.final_torque == pytest.approx(TORQUE, rel=0.10)
