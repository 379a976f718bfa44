"""What is written about a run, also of one that ended before it had begun."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kv_action_router.cli import demo, film, report
from kv_action_router.reporting import archive
from kv_action_router.reporting.records import (
    CycleRecord,
    CycleTrace,
    MotionSample,
    Placement,
    RunRecord,
    StageSpan,
)
from kv_action_router.reporting.report import Setting
from kv_action_router.robots.model import RobotModel
from kv_action_router.tasks.station import available_stations, load_station

S = 1_000_000_000


def setting(**changes) -> Setting:
    values = dict.fromkeys(("ros_distro", "rmw", "commit", "executor"), "x")
    return Setting(
        **{**values, "seed": 1, "composed": False, "load": 0.0, "cores": 2, "cycles": 2, **changes}
    )


def one_cycle() -> RunRecord:
    """Return a touch at home, 20 samples long."""
    home = np.array(RobotModel.load("ur5e").home)
    names = tuple(RobotModel.load("ur5e").joint_names)
    run = RunRecord(cycles=[CycleRecord(1, True, spans=[StageSpan("approach", 0, S, True)])])
    samples = [MotionSample(0.05 * k, home, home, 0.0 * home) for k in range(20)]
    run.trace = CycleTrace(1, names, samples, placements=(Placement(0.46, 0.05, 0.01),))
    return run


def test_a_run_that_did_not_come_up_has_a_report_with_the_reason(tmp_path: Path, capsys) -> None:
    run = RunRecord(ended_by="waited 60 s for cache_manager to be active")
    assert demo.conclude(run, setting(), tmp_path) == 1
    assert "FAIL  failed touches: 2 (must be == 0)" in capsys.readouterr().out
    content = json.loads((tmp_path / "report.json").read_text())
    assert content["ended_by"] == run.ended_by
    page = (tmp_path / "report.html").read_text()
    assert page.index(run.ended_by) < page.index("<h2>")
    assert "<img" not in page


def test_a_report_is_made_anew_from_its_records_with_pictures(tmp_path: Path, capsys) -> None:
    archive.save(one_cycle(), setting(), tmp_path / report.RECORDS)
    assert report.main([str(tmp_path)]) == 0
    page = (tmp_path / report.PAGE).read_text()
    assert page.count('src="data:image/jpeg;base64,') == 3  # begin, middle and end of the stage
    assert (tmp_path / "film_3.jpg").read_bytes()[:2] == b"\xff\xd8"
    assert len(page) < 1_500_000
    assert (tmp_path / "tracking.png").is_file()
    assert report.main([str(tmp_path / "nowhere")]) == 1
    assert "records" in capsys.readouterr().err


def test_without_a_renderer_the_report_goes_without_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("no display")

    monkeypatch.setattr(film, "Replay", fails)
    report.make(one_cycle(), setting(), tmp_path)
    assert "no film strip: no display" in capsys.readouterr().err
    assert "<img" not in (tmp_path / report.PAGE).read_text()


def test_the_tip_of_each_sample_is_known(tmp_path: Path) -> None:
    frames, tip = film.film(one_cycle(), "touch", 1)
    assert [frame.shot.caption for frame in frames] == ["begin", "approach", "approach: ends"]
    assert tip.shape == (20, 3)
    assert 0.1 < tip[0, 2] < 0.5
    assert film.film(RunRecord(), "touch", 1)[0] == []


def test_any_station_is_filmed_in_its_own_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    def replay(config: Any, _: object) -> Any:
        shown.append(config.cell)
        raise RuntimeError("no display")

    monkeypatch.setattr(film, "Replay", replay)
    for name in available_stations():
        with pytest.raises(RuntimeError, match="no display"):
            film.film(one_cycle(), name, 1)
    assert shown == [load_station(name).cell for name in available_stations()]
