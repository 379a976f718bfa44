"""A joint that jams is named, and nothing jumps when it comes free, however slow it was."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.episode import Episode, EpisodeConfig
from kv_action_router.simulation.sight import true_target
from kv_action_router.synthesis.config import SynthesisConfig

JAMS_NS = 600_000_000
BLOW_NS = 50_000_000  # in which the jam itself shakes the arm
SPEED = 0.1  # [rad/s] of the fastest joint when it jams
MOVES = 0.02  # [rad/s]


@pytest.mark.parametrize("joint", ["shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint"])
def test_a_jam_is_named_and_leaves_no_jump(joint: str) -> None:
    config = EpisodeConfig(
        simulation=SimulationConfig(seed=3), synthesis=SynthesisConfig(velocity_share=0.265)
    )
    limit = RobotModel.load("ur5e").acceleration_limit
    with Episode(true_target, config) as episode:
        plant, modes = episode.robot.plant, episode.injection.controller.modes
        step = limit * plant.dt
        before, steps, jammed_ns = plant.velocity.copy(), [0.0], 0

        def watch(samples: Samples) -> None:
            nonlocal jammed_ns
            now_ns = samples.now_ns
            if not jammed_ns and np.abs(plant.velocity).max() > SPEED:
                jammed_ns = now_ns
                plant.block(joint)
            elif jammed_ns and now_ns > jammed_ns + BLOW_NS:
                steps.append(float((np.abs(plant.velocity - before) / step).max()))
                if now_ns > jammed_ns + JAMS_NS:
                    plant.block("")
            before[:] = plant.velocity

        episode.on_step = watch
        cycle = episode.touch()
        assert modes.stop.engaged, cycle.reason
        assert any(joint in report and "stands still" in report for report in cycle.reports)
        episode.run(1.2 * JAMS_NS * 1e-9)  # it comes free, behind the stop
        assert 0.0 < max(steps) <= 1.0
        assert np.abs(plant.velocity).max() < MOVES
