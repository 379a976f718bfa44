"""From what a benchmark has written down to the figures that are judged."""

from __future__ import annotations

import io
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from report import collect
from rich.console import Console
from throughput import is_carried, of_fleet

from harness import pipeline_figures, rows
from harness.html import distributions, page
from harness.html import rates as rates_of
from harness.phases import Phase, PhaseRecord
from harness.pipeline_bounds import BOUNDS, measured
from harness.pipeline_table import show
from harness.usage import Usage, total
from kv_action_router.reporting.statistics import share_of

PHASE = Phase("hit", "hit", 4)
USED = {"cpu_percent": {"cache_manager": 5.0, "driver": 9.0}, "rss_mb": {"cache_manager": 100.0}}


def stage_times(*totals_ms: float) -> rows.Rows:
    """Return rows whose four parts are equal."""
    shares = np.linspace(0.0, 1.0, 5)
    return np.array([shares * total_ms * 1e6 for total_ms in totals_ms], dtype=np.int64)


def figures_of(record: PhaseRecord, *totals_ms: float) -> dict[str, Any]:
    return pipeline_figures.of_phase(PHASE, record, stage_times(*totals_ms), USED)


def test_the_parts_of_a_passage_add_up_and_warm_up_rows_are_left_out(tmp_path: Path) -> None:
    found = stage_times(4.0, 8.0)
    found[1] += 1_000_000_000
    rows.save(tmp_path / "new" / "rows.npy", found.tolist())
    loaded = rows.load(tmp_path / "new" / "rows.npy")
    assert (loaded == found).all()
    latencies = rows.latencies(rows.since(loaded, 1_000_000_000))
    assert latencies["total"]["n"] == 1
    parts = [latencies[part]["mean"] for part in ("encode", "match", "synthesize", "inject")]
    assert sum(parts) == pytest.approx(latencies["total"]["mean"]) == pytest.approx(8.0)


def test_a_dropped_decision_counts_as_having_taken_the_deadline_at_least() -> None:
    record = PhaseRecord("hit", 0, 1, decisions={"hit": 3}, decisions_dropped=1, decisions_late=1)
    found = figures_of(record, 4.0, 5.0, 6.0)
    assert found["followed"]["max"] == pytest.approx(6.0)
    assert found["total"]["n"] == 5
    assert found["total"]["max"] == pytest.approx(15.0)
    assert found["dropped"]["events"] == 2
    assert found["dropped"]["trials"] == 5
    assert found["nodes_cpu_percent"] == 5.0


def test_no_late_command_in_ten_thousand_still_has_an_upper_bound() -> None:
    record = PhaseRecord("hit", 0, 1, decisions={"hit": 10_000}, counters={"late_commands_sent": 0})
    late = pipeline_figures.dropped(record)["late_commands"]
    assert late["share"] == 0.0
    assert late["upper_bound_95"] == pytest.approx(1.0 - 0.05 ** (1 / 10_000), rel=1e-6)


def whole_report(mean_ms: float) -> dict[str, Any]:
    phase = figures_of(PhaseRecord("hit", 0, 1, decisions={"hit": 4}), *[mean_ms] * 4)
    latencies = rows.latencies(stage_times(2.0, 2.0))
    report: dict[str, Any] = {
        kind: {"trouble": "", "hit": phase, "miss": phase, "camera_rate": phase}
        for kind in ("separate", "composed")
    }
    report["floor"] = dict.fromkeys(("separate", "composed"), latencies)
    policy = {"ms": {"n": 2, "mean": 60.0, "p50": 60.0, "p99": 60.0, "p999": 60.0, "max": 60.0}}
    report["end_to_end"] = {"eager_320x240": policy, "onnxruntime_320x240": {"trouble": "none"}}
    report["ratios"] = pipeline_figures.ratios(report)
    return report


def test_ratios_are_over_the_mean_of_a_hit_and_what_was_not_measured_has_none() -> None:
    ratios = whole_report(4.0)["ratios"]["separate"]
    assert ratios["above_floor_ms"] == pytest.approx(2.0)
    assert ratios["cache_off"] == pytest.approx(1.0)
    assert ratios["end_to_end"]["eager_320x240"] == pytest.approx(15.0)
    assert ratios["end_to_end"]["onnxruntime_320x240"] is None


def test_a_quick_pipeline_keeps_every_bound_and_a_slow_or_unmeasured_one_does_not() -> None:
    assert [bound.name for bound in BOUNDS if not bound.holds(whole_report(3.0))] == []
    slow = {bound.name for bound in BOUNDS if not bound.holds(whole_report(14.0))}
    assert len(slow) >= 8
    nothing: dict[str, Any] = {}
    assert not any(bound.holds(nothing) for bound in BOUNDS)
    assert measured("a", "b")({"a": None}) is None


def test_the_table_shows_a_report_with_gaps() -> None:
    report = whole_report(4.0)
    del report["composed"]["miss"]
    text = io.StringIO()
    Console(width=140, file=text).print(show(report))
    assert "separate, hit" in text.getvalue()


def test_use_of_the_processor_is_measured_between_two_instants_of_a_namespace() -> None:
    usage = Usage({"robot1/cache_manager": os.getpid()})
    usage.sample()
    usage._due_ns = 0
    usage.sample()
    found = usage.between(0, time.monotonic_ns(), "robot1")
    assert found["cpu_percent"]["cache_manager"] >= 0.0
    assert found["rss_mb"]["cache_manager"] > 1.0
    assert usage.between(0, time.monotonic_ns())["cpu_percent"] == {}
    assert total(found["rss_mb"], ("another",)) is None


@pytest.mark.parametrize(("late", "stops", "carried"), [(0, [], 1), (1, [], 0), (0, ["why"], 0)])
def test_a_robot_is_carried_that_keeps_its_deadlines(
    late: int, stops: list[str], carried: int
) -> None:
    counters = {"ticks": 1000, "missed_ticks": 0}
    record = PhaseRecord("fleet", counters=counters, stops=stops)
    record.decisions, record.decisions_late = {"hit": 4}, late
    robot = {"trouble": "", "fleet": figures_of(record, 4.0)}
    assert is_carried(robot) == bool(carried)
    fleet = of_fleet([robot, {"trouble": "died"}])
    assert (fleet["robots"], fleet["measured"], fleet["carried"]) == (2, 1, carried)


def test_all_reports_become_one_page_with_what_was_judged(tmp_path: Path) -> None:
    judged = [{"name": "mean <ms>", "value": None, "compare": "<=", "limit": 4.5, "holds": False}]
    hit = {"total": rows.latencies(stage_times(4.0))["total"], "dropped": share_of(1, 400)}
    report = {"setting": {"cores": 2}, "hit": hit}
    folder = tmp_path / "bench"
    folder.mkdir()
    (folder / "pipeline.json").write_text(json.dumps({**report, "judged": judged}))
    (folder / "report.json").write_text("[]")
    (tmp_path / "episode.json").write_text(json.dumps({"judged": []}))
    (tmp_path / "other.json").write_text("{}")
    found = collect(folder, 0.0)
    assert sorted(found) == ["episode", "pipeline"]
    assert collect(folder, time.time() + 3600.0) == {}
    assert [path for path, _ in distributions(found["pipeline"])] == ["hit / total"]
    assert [path for path, _ in rates_of(found["pipeline"])] == ["hit / dropped"]
    text = page(found)
    assert "mean &lt;ms&gt;" in text
    assert "not measured" in text
    assert "<svg" in text
    assert f"{share_of(1, 400)['upper_bound_95']:.4g}" in text
