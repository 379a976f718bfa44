"""Stations: a cell and its tasks, from a file; what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from kv_action_router.errors import TaskDefinitionError
from kv_action_router.reporting.bounds import BOUNDS
from kv_action_router.simulation.config import CELLS
from kv_action_router.tasks.station import available_stations, load_station


def test_stations_come_with_the_package() -> None:
    assert set(available_stations()) >= {"touch", "screw", "station"}
    assert set(available_stations()) == set(BOUNDS)  # what is shown is judged
    for name in available_stations():
        station = load_station(name)
        assert station.name == name
        assert station.cell in CELLS
    names = [task.name for task in load_station("station").tasks]
    assert names == ["tighten_m3_screw", "insert_connector", "inspect"]


def test_a_station_of_a_file_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\ncell: touch\ntasks: [touch_target]\n")
    assert [task.name for task in load_station(str(file)).tasks] == ["touch_target"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[1]", "must be a mapping"),
        ("{name: a, cell: touch, tasks: []}", "at least one"),
        ("{name: a, cell: touch, tasks: [touch_target, touch_target]}", "none twice"),
        ("{name: a, cell: touch, tasks: touch_target}", "tasks must be a list"),
        ("{name: a, cell: touch, tasks: [tuch_target]}", "did you mean 'touch_target'"),
        ("{name: a, tasks: [touch_target]}", "cell must be a text"),
        ("{name: a, cell: touch, task: [touch_target]}", "did you mean"),
        ("{name: [", "cannot be read"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(content)
    with pytest.raises(TaskDefinitionError, match=words):
        load_station(str(file))


def test_a_name_that_is_none_gets_a_hint() -> None:
    with pytest.raises(TaskDefinitionError, match="did you mean 'station'"):
        load_station("staton")
