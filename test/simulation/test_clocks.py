"""Header stamps that begin at 0, stand still, leap or go back change no motion (K11, K39)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from kv_action_router.contracts import InjectorEvent, InjectorState
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.cell import RobotCell, Samples
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.episode import Episode, EpisodeConfig
from kv_action_router.simulation.sight import TrueTarget

YEAR = 365 * 24 * 3600.0  # [s]
Clock = Callable[[float], float]  # seconds since the beginning -> stamp [s]


class StampedCell(RobotCell):
    """A robot whose driver stamps joint states by a clock of its own."""

    stamped_by: Clock

    def sense(self) -> Samples:
        samples = super().sense()
        elapsed = samples.now_ns * 1e-9 - 1.0
        stamp_ns = round(self.stamped_by(elapsed) * 1e9)
        return dataclasses.replace(
            samples, joints=dataclasses.replace(samples.joints, stamp_ns=stamp_ns)
        )


def course(clock: Clock, delay_limit: float = 0.020) -> tuple[list[np.ndarray], set[InjectorState]]:
    """Run one cycle; return the set-points, and the injector's states."""

    def cell(config: SimulationConfig, robot: RobotModel, delay: int) -> RobotCell:
        made = StampedCell(config, robot, delay)
        made.stamped_by = clock
        return made

    config = EpisodeConfig()
    injection = dataclasses.replace(config.injection, joint_state_delay=delay_limit)
    config = dataclasses.replace(config, injection=injection)
    episode = Episode(lambda _plant, _config: TrueTarget(1), config, cell)
    set_points, states = [], set()

    def note(_: Samples) -> None:
        controller = episode.injection.controller
        set_points.append(np.array(controller.set_point.position))
        states.add(controller.state)

    episode.on_step = note
    cycle = episode.touch()
    assert cycle.success, cycle.reason
    assert cycle.false_hits == 0
    assert cycle.tracking_error < 0.005
    bad = {InjectorEvent.FAIL_SAFE, InjectorEvent.STOPPED, InjectorEvent.STARVED}
    assert not [event for event in episode.injection.events if event.kind in bad]
    return set_points, states


@pytest.fixture(scope="module")
def plain() -> tuple[list[np.ndarray], set[InjectorState]]:
    return course(lambda t: 1000.0 + t)


@pytest.mark.parametrize(
    ("clock", "delay_limit"),
    [
        (lambda t: t, 0.020),
        (lambda t: 0.0, 0.020),
        (lambda t: 100.0 + min(t, 1.0), 0.0),  # with simulated time the node judges no delay
        (lambda t: 100.0 + t if t < 1.5 else t - 1.5, 0.020),
        (lambda t: 100.0 + t + (6.0 * YEAR if t > 1.0 else 0.0), 0.020),
    ],
    ids=["from 0", "always 0", "stands still", "back to 0", "six years"],
)
def test_the_arm_does_as_it_did(clock: Clock, delay_limit: float, plain) -> None:
    set_points, states = course(clock, delay_limit)
    # A clock that is set costs the few samples that are refused before it counts as set; where the
    # set-point is does not depend on them.
    same = min(len(set_points), len(plain[0]))
    assert abs(len(set_points) - len(plain[0])) <= 10
    np.testing.assert_allclose(set_points[:same], plain[0][:same], atol=0.01)
    assert states == plain[1]
