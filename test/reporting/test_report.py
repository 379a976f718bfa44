"""Reports: their numbers come from the records, and the bounds judge them."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from kv_action_router.reporting import bounds, plots, report
from kv_action_router.reporting.live import LiveView
from kv_action_router.reporting.records import (
    PARTS,
    CycleRecord,
    CycleTrace,
    LoopCounters,
    MotionSample,
    Passage,
    RunRecord,
    StageSpan,
    TargetFrame,
)
from kv_action_router.reporting.statistics import lower_confidence_bound, quantiles, summary

SETTING = report.Setting("kilted", "rmw_fastrtps_cpp", "abc", 1, False, "events", 0.5, 2)
MS = 1_000_000


def a_run(cycles: int = 20, hit_ms: float = 4.0) -> RunRecord:
    run = RunRecord()
    for index in range(1, cycles + 1):
        hits = 3 if index > 5 else 0
        run.cycles.append(
            CycleRecord(index, True, "", 3, hits, hits, 4.0, touch_error=0.001, contact_force=9.0)
        )
        total = round(hit_ms * MS)
        stages = (1, 1 + total // 2, 1 + total * 5 // 8, 1 + total * 3 // 4, 1 + total)
        run.passages.append(Passage(index, "hit" if hits else "miss", stages))
        run.passages.append(Passage(1000 + index, "refresh", stages))
    run.counters = LoopCounters(1000, 990, 0, 400, 0, 0, 1000, 0, 500.0, True)
    run.lateness_us = {"p50": 20.0, "p99": 60.0, "p999": 90.0, "max": 130.0}
    run.real_time_factors = [0.99, 1.0]
    run.image_ages_ms = [5.0, 30.0]
    run.cpu_percent = {"actuator_injector": 20.0, "cache_manager": 9.0, "simulation": 50.0}
    run.rss_mb = {"cache_manager": 120.0}
    return run


def test_a_good_run_keeps_all_bounds():
    content = report.build(a_run(), SETTING)
    assert bounds.broken(content, bounds.TOUCH_BOUNDS, essential_only=False) == []
    assert content["hit_rate"]["task"] == pytest.approx(45 / 60)
    assert content["latency_ms"]["pipeline_hit"]["n"] == 15
    assert content["latency_ms"]["pipeline_miss"]["n"] == 5


def of_screws() -> RunRecord:
    run = a_run()
    for cycle in run.cycles:
        cycle.final_torque, cycle.advance, cycle.search = 3.45, 0.00258, 0.0021
        cycle.spans = [
            StageSpan("search", 0, 200 * MS, True),
            StageSpan("final_tighten", 200 * MS, 1100 * MS, cycle.index != 4),
        ]
        cycle.target_errors = [0.0012, 0.0008]
    return run


def test_screws_add_their_figures_one_a_cycle():
    setting = dataclasses.replace(SETTING, commanded_torque=3.5)
    run = of_screws()
    content = report.build(run, setting)
    assert bounds.broken(content, bounds.SCREW_BOUNDS, essential_only=False) == []
    assert content["final_torque_nm"] == [3.45] * 20
    assert content["advance_mm"] == pytest.approx([2.58] * 20)
    assert content["search_mm"] == pytest.approx([2.1] * 20)
    assert content["torque_off"] == pytest.approx(0.05 / 3.5)
    assert content["stage_s"]["search"] == {"p50": 0.2, "p95": 0.2, "max": 0.2, "cycles": 20}
    assert content["stage_s"]["final_tighten"]["cycles"] == 19
    rate = content["stage_rate"]["final_tighten"]
    assert (rate["events"], rate["trials"]) == (19, 20)
    assert rate["lower_bound_95"] == lower_confidence_bound(19, 20)
    assert content["target_error_mm"]["n"] == 40
    assert content["target_error_mm"]["p50"] == pytest.approx(1.0)
    assert content["per_cycle"][0]["target_error_mm"] == pytest.approx(1.2)
    run.cycles[3].final_torque = 3.1
    worse = report.build(run, setting)
    assert any("torque off" in line for line in bounds.broken(worse, bounds.SCREW_BOUNDS, True))
    run.cycles[3].final_torque = math.nan  # it was never let go of
    unknown = report.build(run, setting)
    assert any("torque off" in line for line in bounds.broken(unknown, bounds.SCREW_BOUNDS, True))
    without = report.build(run, SETTING)
    assert without["final_torque_nm"] == without["advance_mm"] == without["search_mm"] == []


@pytest.mark.parametrize(
    ("spoil", "name"),
    [
        (lambda run: setattr(run.cycles[3], "succeeded", False), "failed touches"),
        (lambda run: setattr(run.cycles[3], "touch_error", 0.0061), "touch error max [mm]"),
        (lambda run: setattr(run, "false_hits", 1), "false hits"),
        (lambda run: run.passages.append(Passage(9, "hit", (1, 2, 3, 4, 16 * MS))), "hit max"),
        (lambda run: run.passages.append(Passage(9, "miss", (1, 2, 3, 4, 16 * MS))), "miss max"),
        (lambda run: run.real_time_factors.append(0.9), "real-time factor"),
        (lambda run: setattr(run, "decisions_unsent", 30), "decisions dropped"),
        (lambda run: run.cpu_percent.update(task_key_encoder=70.0), "five nodes"),
        (
            lambda run: setattr(run, "counters", LoopCounters(late_commands_sent=1)),
            "late commands sent",
        ),
    ],
)
def test_each_fault_breaks_the_bound_that_names_it(spoil, name):
    run = a_run()
    spoil(run)
    content = report.build(run, SETTING)
    assert any(name in line for line in bounds.broken(content, bounds.TOUCH_BOUNDS, False))


def test_a_figure_that_was_not_measured_is_no_success():
    content = report.build(RunRecord(cycles=[CycleRecord(1, succeeded=True)]), SETTING)
    failing = bounds.broken(content, bounds.TOUCH_BOUNDS, essential_only=False)
    for name in ("pipeline hit mean", "five nodes", "real-time factor"):
        assert any(name in line and "not measured" in line for line in failing)


def test_short_runs_are_judged_by_touches_and_late_commands_only():
    run = a_run(3, hit_ms=40.0)
    content = report.build(run, SETTING)
    assert bounds.broken(content, bounds.TOUCH_BOUNDS, essential_only=True) == []
    run.cycles[0].succeeded = False
    content = report.build(run, SETTING)
    assert len(bounds.broken(content, bounds.TOUCH_BOUNDS, essential_only=True)) == 1


def test_the_parts_of_a_passage_add_up():
    passage = Passage(1, "hit", (10, 30, 35, 60, 61))
    assert sum(passage.part_ms(part) for part in PARTS) == pytest.approx(passage.total_ms)


def test_nan_becomes_null_in_the_file(tmp_path):
    run = a_run(1)
    run.cycles[0].touch_error = math.nan
    file = tmp_path / "deep" / "report.json"
    report.write(report.build(run, SETTING), file)
    assert json.loads(file.read_text())["per_cycle"][0]["touch_error_mm"] is None


def test_plots_are_written_for_what_was_recorded(tmp_path):
    run = a_run()
    arm = [np.full(6, 0.1 * i) for i in range(5)]
    run.trace = CycleTrace(
        20, tuple("abcdef"), [MotionSample(0.01 * i, q, q, q) for i, q in enumerate(arm)]
    )
    run.frame = TargetFrame(np.zeros((240, 320, 3), np.uint8), (100.0, 80.0), 12.0)
    drawn = plots.draw(run, report.build(run, SETTING))
    names = {file.name for file in plots.write_all(drawn, tmp_path)}
    plots.close(drawn)
    assert names == {
        f"{name}.png"
        for name in ("hit_rate", "latency", "latency_tails", "image_age", "tracking", "target")
    }
    assert plots.draw(RunRecord(), report.build(RunRecord(), SETTING)) == []


def test_the_live_view_prints_a_line_a_cycle_without_a_terminal():
    console = Console(record=True, force_terminal=False, width=120)
    run = a_run(2)
    view = LiveView("touch", 2, console)
    with view.shown(run):
        view.cycle_done(run, run.cycles[0])
    assert "cycle   1  done  error 1.00 mm" in console.export_text()


def test_summaries_of_nothing_say_so():
    assert summary([])["mean"] is None
    assert quantiles([math.nan], p50=0.5) == {"p50": None}


@given(st.integers(1, 200), st.data())
def test_the_lower_bound_is_below_the_rate(trials, data):
    successes = data.draw(st.integers(0, trials))
    bound = lower_confidence_bound(successes, trials)
    assert 0.0 <= bound <= successes / trials


def test_the_lower_bound_of_20_in_20_is_the_exact_one():
    # all of n succeeded: the bound is (1 - confidence)^(1/n)
    assert lower_confidence_bound(20, 20) == pytest.approx(0.05 ** (1 / 20))
