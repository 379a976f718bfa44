"""A plug is pushed home and looked at, by all five stages in one process."""

from __future__ import annotations

import pytest

from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.simulation.config import station_cell
from kv_action_router.simulation.connector import HUE
from kv_action_router.simulation.episode import Episode, EpisodeConfig
from kv_action_router.simulation.plant import CONNECTOR
from kv_action_router.simulation.sight import rendered_images, true_target
from kv_action_router.tasks.definition import load_task

ENCODING = EncoderConfig(other_targets=(CONNECTOR,), other_target_hues=(HUE,))


def test_a_plug_is_pushed_home_and_a_worn_latch_is_found_out() -> None:
    config = EpisodeConfig(
        task="insert_connector", simulation=station_cell(camera_rate=10), encoding=ENCODING
    )
    episode = Episode(true_target, config)
    cycle = episode.touch()
    assert cycle.success, cycle.reason
    assert cycle.latched
    assert cycle.insertion == pytest.approx(4.0e-3, abs=2e-4)
    assert cycle.contact_force < 30.0
    assert list(cycle.stages) == [stage.name for stage in episode.task.stages]
    assert cycle.events == cycle.reports == episode.caching.refused == []

    target = episode.place()
    connector = episode.robot.connector
    assert connector is not None
    connector.renew(connector.place, catches=False)
    worn = episode.perform(episode.task, target)
    assert not worn.success
    assert worn.reason.startswith("stage 'tug': ")
    assert not worn.latched


@pytest.mark.parametrize(("blur", "reason"), [(0.0, ""), (0.7, "stage 'look': blurred")])
def test_a_connector_is_looked_at_until_its_image_is_sharp(blur: float, reason: str) -> None:
    config = EpisodeConfig(
        task="inspect",
        simulation=station_cell(camera_blur=blur, camera_rate=15),
        encoding=ENCODING,
    )
    with Episode(rendered_images, config) as episode:
        cycle = episode.touch()
    assert cycle.success == (not reason), cycle.reason
    assert cycle.reason.startswith(reason)
    assert cycle.events == cycle.reports == []


def test_both_tasks_act_on_the_connector() -> None:
    assert {load_task(name).target for name in ("insert_connector", "inspect")} == {CONNECTOR}
