"""A box in the way: what the simulation has in it, and what the five stages make of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from kv_action_router.contracts import CacheMatch, FloatArray
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.errors import InputError
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.episode import Cycle, Episode, EpisodeConfig
from kv_action_router.simulation.plant import Plant
from kv_action_router.simulation.sight import rendered_images

TARGET = (0.46, 0.14)  # [m]
PLACE = (0.464, 0.059)  # [m] between home and the target
SIZE = np.array([0.08, 0.03, 0.18])  # [m]


@pytest.fixture
def plant() -> Plant:
    """Return the arm at home."""
    robot = RobotModel.load()
    plant = Plant(SimulationConfig(), robot.home, robot.velocity_limit)
    plant.place_target(*TARGET)
    return plant


class TestBox:
    """The box itself."""

    def test_is_away_at_first(self, plant: Plant) -> None:
        assert not plant.box.present
        plant.step(1)
        assert plant.data.ncon == 0

    def test_comes_and_goes(self, plant: Plant) -> None:
        plant.place_box(*PLACE, SIZE, yaw=0.3)
        assert plant.box.present
        shape = plant.model.geom("box_shape")
        assert np.allclose(shape.size, SIZE / 2)
        assert np.allclose(plant.data.geom("box_shape").xpos, [*PLACE, 0.09])
        plant.box.remove()
        plant.step(1)
        assert not plant.box.present
        assert plant.data.geom("box_shape").xpos[2] < -1.0

    def test_says_who_touches_it(self, plant: Plant) -> None:
        plant.place_box(0.45, 0.0, np.array([0.06, 0.06, 0.32]))
        for step in range(400):
            now_ns = 2_000_000 * step
            plant.drives.command(Interface.VELOCITY, np.array([0, 0.4, 0, 0, 0, 0]), (), now_ns)
            plant.step(now_ns)
            if plant.box.touched_by:
                break
        assert plant.box.touched_by == "tip_collision"
        assert plant.box.contact_steps == 1
        plant.place_box(0.45, 0.3, SIZE)
        assert (plant.box.touched_by, plant.box.contact_steps) == ("", 0)

    def test_knows_how_far_the_arm_is(self, plant: Plant) -> None:
        x, y, _ = plant.tip
        plant.place_box(x + 0.30, y, np.array((0.1, 0.1, 0.6)))
        far = plant.box.distance()
        plant.place_box(x + 0.25, y, np.array((0.1, 0.1, 0.6)))
        assert 0.0 < plant.box.distance() == pytest.approx(far - 0.05, abs=1e-3)

    def test_covers_its_footprint_and_the_size_of_a_target(self, plant: Plant) -> None:
        assert not plant.box.covers(np.array(PLACE))
        plant.place_box(0.5, 0.3, np.array([0.2, 0.04, 0.1]), yaw=np.pi / 2)
        assert plant.box.covers(np.array([0.5, 0.41]))
        assert not plant.box.covers(np.array([0.5, 0.43]))
        assert plant.box.covers(np.array([0.535, 0.3]))
        assert not plant.box.covers(np.array([0.545, 0.3]))
        plant.box.remove()
        assert not plant.box.covers(np.array([0.5, 0.3]))

    @pytest.mark.parametrize(
        ("at", "size", "field"),
        [
            ((0.45, 0.0), (0.06, 0.06, 0.4), "position must be free, got .* where .*collision is"),
            ((0.46, 0.16), (0.06, 0.06, 0.1), "position must be free, got .* where the target is"),
            ((0.5, 0.2), (0.06, 0.06, 0.0), "size"),
            ((0.5, 0.2), (0.06, np.nan, 0.1), "size"),
            ((0.5, 0.2), (0.06, 0.06), "size"),
            ((0.5, 2.0), (0.06, 0.06, 0.1), "position"),
            ((np.nan, 0.2), (0.06, 0.06, 0.1), "position"),
        ],
    )
    def test_bad_places_are_refused_and_change_nothing(
        self, plant: Plant, at: tuple[float, float], size: tuple[float, ...], field: str
    ) -> None:
        plant.place_box(0.5, 0.3, SIZE)
        with pytest.raises(InputError, match=field):
            plant.place_box(*at, np.array(size))
        assert plant.box.present
        assert np.allclose(plant.data.geom("box_shape").xpos, [0.5, 0.3, 0.09])
        assert np.allclose(plant.model.geom("box_shape").size, SIZE / 2)


def prepared(episode: Episode) -> Plant:
    """Let every cycle have the same target, at full speed; return the plant.

    Near the box the monitor has the arm slowed down; that is tested with it, and takes long.
    """
    plant: Plant = episode.robot.plant

    def place_target() -> FloatArray:
        plant.place_target(*TARGET)
        return plant.target

    episode.robot.place_target = place_target
    episode.synthesis.respond = lambda *_: None
    return plant


@dataclass
class Told:
    """A cycle, the matches of its decisions, and whether the box was touched in it."""

    cycle: Cycle
    decisions: list[CacheMatch]
    contact_steps: int


@dataclass
class Story:
    """Cycles on one place: with nothing in the way, with a box (twice), with nothing again."""

    learned: Told
    refused: Told
    again: Told
    free: Told
    seen: FloatArray


@pytest.fixture(scope="module")
def story() -> Story:
    """Let the arm learn a motion, put a box into its way, and take it away again."""
    config = EpisodeConfig(encoding=EncoderConfig(obstacle_cell=0.03))
    with Episode(rendered_images, config) as episode:
        plant = prepared(episode)

        def touch() -> Told:
            known = len(episode.synthesis.decisions)
            plant.box.contact_steps = 0
            cycle = episode.touch()
            return Told(cycle, episode.synthesis.decisions[known:], plant.box.contact_steps)

        learned = touch()
        plant.place_box(*PLACE, SIZE)
        episode.run(0.3)
        assert episode.source.obstacles is not None
        seen = episode.source.obstacles.center
        refused, again = touch(), touch()
        plant.box.remove()
        episode.run(0.3)
        return Story(learned, refused, again, touch(), seen)


def test_the_camera_sees_the_box(story: Story) -> None:
    inside = np.abs(story.seen - np.array([*PLACE, SIZE[2] / 2])) < SIZE / 2 + 0.02
    assert len(story.seen) > 8
    assert inside.all()


def test_a_hit_into_the_box_is_refused_with_its_reason_and_led_around(story: Story) -> None:
    assert story.learned.cycle.success
    assert story.learned.cycle.task_hits == 0
    told = story.refused
    assert told.cycle.success, told.cycle.reason
    assert told.contact_steps == 0
    assert told.cycle.touch_error <= 0.0025
    assert told.cycle.peak_force <= 30.0
    approach, touch, retreat = told.decisions
    for match in (approach, retreat):
        assert not match.hit
        assert match.guard == "collision"
        assert "refused by guard collision: spindle - obstacle " in match.reason
        assert " s, padding 0.02 m" in match.reason
    assert touch.hit  # the descent itself is free
    assert told.cycle.duration < 1.5 * story.learned.cycle.duration


def test_the_way_around_is_remembered(story: Story) -> None:
    told = story.again
    assert told.cycle.success, told.cycle.reason
    assert told.contact_steps == 0
    assert told.cycle.task_hits == told.cycle.behavior_hits == 3
    assert told.decisions[0].entry_id != story.free.decisions[0].entry_id


def test_the_old_entry_hits_again_when_the_box_is_gone(story: Story) -> None:
    told = story.free
    assert told.cycle.success, told.cycle.reason
    assert told.cycle.task_hits == told.cycle.behavior_hits == 3
    assert told.cycle.duration == pytest.approx(story.learned.cycle.duration, abs=0.2)


def test_the_box_really_is_in_the_way() -> None:
    """Without obstacle spheres the learned motion runs into it."""
    config = EpisodeConfig(encoding=EncoderConfig(obstacle_height_minimum=1.0))
    with Episode(rendered_images, config) as episode:
        plant = prepared(episode)
        plant.place_box(*PLACE, SIZE)
        cycle = episode.touch()
    assert plant.box.touched_by
    assert not cycle.success
