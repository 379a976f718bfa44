"""The five stages around a simulated robot, in one process: cycles of the task."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kv_action_router.contracts import Decision, InjectorState
from kv_action_router.errors import ConfigError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.monitoring.events import FailureReport
from kv_action_router.simulation.cell import Samples
from kv_action_router.simulation.episode import Cycle, Episode, EpisodeConfig
from kv_action_router.simulation.sight import TrueTarget, rendered_images, true_target
from kv_action_router.tasks.rules import Response, Severity

Known = tuple[Episode, list[Cycle], list[float]]

TOUCH_ERROR = 0.0025  # [m]
PEAK_FORCE = 30.0  # [N]
TRACKING_ERROR = 0.010  # [rad]
DURATION = 5.0  # [s]


def check(cycle: Cycle) -> None:
    """A touch as it should be."""
    assert cycle.success, cycle.reason
    assert cycle.touch_error <= TOUCH_ERROR
    assert cycle.peak_force <= PEAK_FORCE
    assert cycle.tracking_error <= TRACKING_ERROR
    assert cycle.duration <= DURATION
    assert list(cycle.stages) == ["approach", "touch", "retreat"]
    assert cycle.decisions == 3
    assert cycle.false_hits == 0
    assert cycle.events == []
    assert cycle.reports == []


@pytest.fixture(scope="module")
def known_place() -> Known:
    """Two cycles on the true place; the joint speed in every step of the second."""
    speeds: list[float] = []

    def note(samples: Samples) -> None:
        speeds.append(float(np.abs(samples.joints.velocity).max()))

    with Episode(true_target) as episode:
        cycles = [episode.touch()]
        episode.on_step = note
        cycles.append(episode.touch())
        episode.on_step = None
        return episode, cycles, speeds


def test_first_cycle_is_planned_and_touches(known_place: Known) -> None:
    _, cycles, _ = known_place
    check(cycles[0])
    assert cycles[0].task_hits == 0
    assert cycles[0].behavior_hits == 0


def test_second_cycle_comes_from_the_cache(known_place: Known) -> None:
    episode, cycles, _ = known_place
    check(cycles[1])
    assert cycles[1].task_hits == cycles[1].behavior_hits == 3
    assert episode.caching.refused == []
    layers = episode.caching.manager.statistics().layers
    assert {layer.layer: layer.entries for layer in layers}["task"] == 3


def test_ends_at_home_and_held(known_place: Known) -> None:
    episode, _, speeds = known_place
    feedback = episode.injection.feedback
    assert feedback is not None
    assert feedback.state in (InjectorState.HOLD, InjectorState.FOLLOW)
    joints = episode.injection.controller.joints
    assert np.abs(np.subtract(joints.position, episode.robot.home)).max() < 0.005
    assert max(speeds) < math.pi  # the slowest joint limit


def test_nothing_is_late_or_refused(known_place: Known) -> None:
    episode, _, _ = known_place
    counters = episode.injection.controller.counters
    assert counters.chunks_refused == counters.chunks_late == counters.late_commands_sent == 0
    assert counters.set_points_refused == 0
    assert counters.confident_ticks == counters.ticks
    synthesizer = episode.synthesis.synthesizer
    assert synthesizer.decisions_dropped == synthesizer.refreshes_dropped == 0
    assert list(synthesizer.tasks.reports) == []


def test_same_seed_same_course() -> None:
    ends = []
    for _ in range(2):
        with Episode(true_target) as episode:
            episode.run(0.1)
            episode.robot.place_target()
            episode.synthesis.start(episode.task, "goal", episode.robot.now_ns)
            episode.run(0.4)
            ends.append(episode.robot.plant.position.copy())
    assert np.abs(ends[0] - episode.robot.home).max() > 0.05
    assert np.array_equal(ends[0], ends[1])


def test_touches_what_the_camera_sees() -> None:
    with Episode(rendered_images) as episode:
        cycle = episode.touch()
        seen = episode.source.obstacles
    check(cycle)
    assert seen is not None


def test_stop_ends_a_cycle_and_says_why() -> None:
    with Episode(true_target) as episode:
        begin_ns = episode.robot.now_ns
        report = FailureReport(
            decision=Decision(),
            error_code=520,
            message="force at the tool is 61 N",
            severity=Severity.FATAL,
            source="",
            detector="unexpected_contact",
            signal="wrench_force",
            value=61.0,
            limit=60.0,
            held=0.003,
            responses=(Response.BRAKE,),
            task="touch_target",
            stage="approach",
            monotonic_ns=begin_ns,
            count=1,
        )

        def collide(samples: Samples) -> None:
            if samples.now_ns > begin_ns + 700_000_000:  # in the middle of the approach
                episode.injection.hear([report])

        episode.on_step = collide
        cycle = episode.touch()
        moving = np.abs(episode.robot.plant.velocity).max()
        episode.run(0.25)  # from 1.6 rad/s
        resting = np.abs(episode.robot.plant.velocity).max()
    assert not cycle.success
    assert "force at the tool is 61 N" in cycle.reason
    assert episode.injection.controller.state is InjectorState.STOPPED
    assert moving > 0.2
    assert resting < 0.01


@pytest.mark.parametrize("interface", ["velocity", "position"])
def test_other_interfaces_touch_as_gently(interface: str) -> None:
    config = EpisodeConfig(
        injection=InjectionConfig(watched_nodes=("",), command_interface=interface)
    )
    with Episode(true_target, config) as episode:
        cycle = episode.touch()
    assert cycle.success, cycle.reason
    assert cycle.touch_error <= TOUCH_ERROR
    assert cycle.peak_force <= PEAK_FORCE
    assert cycle.events == []
    assert cycle.reports == []


def test_noisy_target_spoils_no_touch() -> None:
    """A motion that follows noise has hardly any velocity at its end, but acceleration."""
    with Episode(lambda _, config: TrueTarget(config.seed, bias=0.0, noise=2.0e-4)) as episode:
        cycle = episode.touch()
    assert cycle.success, cycle.reason
    assert cycle.touch_error <= 0.001
    assert cycle.peak_force <= PEAK_FORCE


@pytest.mark.parametrize(("field", "value"), [("command_delay", 11), ("settle", 0.0)])
def test_bad_configuration_is_refused(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match=field):
        EpisodeConfig(**{field: value})  # type: ignore[arg-type]
