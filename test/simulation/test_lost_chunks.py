"""Chunks that a link loses or reorders cost time: no task hangs, and nothing jumps."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest

from kv_action_router.contracts import CacheMatch, TrajectoryChunk
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.episode import Episode, EpisodeConfig
from kv_action_router.simulation.faulty_link import Fault, FaultyLink
from kv_action_router.simulation.shells.synthesis import Synthesis
from kv_action_router.simulation.sight import true_target
from kv_action_router.synthesis.config import SynthesisConfig

LASTS_NS = 600_000_000
CYCLES = 2


class FaultyChunks:
    """The synthesis, behind a link that fails for 0.6 s, again and again."""

    def __init__(self, real: Synthesis, fault: Fault) -> None:
        self._real = real
        self._fault = fault
        self._link: FaultyLink[TrajectoryChunk] = FaultyLink(lambda _, chunk: chunk)
        self._arrived: deque[TrajectoryChunk] = deque()
        self._generator = np.random.default_rng(2)
        self._from_ns = self._until_ns = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __call__(self, match: CacheMatch | None, samples: Samples) -> TrajectoryChunk | None:
        now_ns = samples.now_ns
        if now_ns >= self._until_ns:
            self._from_ns = now_ns + int(self._generator.uniform(0.5e9, 3.0e9))
            self._until_ns = self._from_ns + LASTS_NS
        self._link.fault = self._fault if now_ns >= self._from_ns else Fault.NONE
        chunk = self._real(match, samples)
        if chunk is not None:
            self._arrived.extend(self._link.take(chunk, now_ns))
        self._arrived.extend(self._link.due(now_ns))
        return self._arrived.popleft() if self._arrived else None


@pytest.mark.parametrize("fault", [Fault.SILENCE, Fault.REORDER])
def test_tasks_end_and_the_arm_never_jumps(fault: Fault) -> None:
    config = EpisodeConfig(
        simulation=SimulationConfig(seed=2), synthesis=SynthesisConfig(velocity_share=0.4)
    )
    limit = RobotModel.load("ur5e").acceleration_limit
    with Episode(true_target, config) as episode:
        plant = episode.robot.plant
        step = limit * plant.dt
        episode.synthesis = FaultyChunks(episode.synthesis, fault)  # type: ignore[assignment]
        before, steps = plant.velocity.copy(), [0.0]

        def watch(_: Samples) -> None:
            if not episode.robot.contacts:
                steps.append(float((np.abs(plant.velocity - before) / step).max()))
            before[:] = plant.velocity

        episode.on_step = watch
        for _ in range(CYCLES):
            cycle = episode.touch()
            assert cycle.success, cycle.reason
    assert 0.0 < max(steps) <= 1.0
