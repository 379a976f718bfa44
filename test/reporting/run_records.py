"""Runs to make reports of: a whole one, and any that may come out of an interrupted run."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

from kv_action_router.reporting.records import (
    CycleRecord,
    CycleTrace,
    LoopCounters,
    MotionSample,
    Passage,
    Placement,
    RunRecord,
    StageSpan,
    TargetFrame,
)
from kv_action_router.reporting.report import Setting

S = 1_000_000_000  # [ns]
JOINTS = ("elbow_joint", "spindle_joint")
STAGES = ("approach", "search", "final_tighten", "retreat")

anything = st.floats(allow_nan=True, allow_infinity=True)
small = st.one_of(st.just(math.nan), st.floats(-1.0, 1.0))
counts = st.integers(0, 50)


def setting_of(run: RunRecord, **changes) -> Setting:
    values = {
        "ros_distro": "kilted",
        "rmw": "rmw_fastrtps_cpp",
        "commit": "abc",
        "seed": 1,
        "composed": False,
        "executor": "events",
        "load": 0.5,
        "cores": 2,
        "commanded_torque": 3.5,
        "work": "screw",
        "cycles": max(3, len(run.cycles)),
        "machine": {"processor": "a & b"},
    }
    return Setting(**{**values, **changes})


def a_whole_run(cycles: int = 3) -> RunRecord:
    """Return screws that were driven, with everything that can be recorded."""
    run = RunRecord()
    for index in range(1, cycles + 1):
        cycle = CycleRecord(index, True, "", 3, 2, 2, 4.0, 0.0002, 0.4, 3.49, 0.0026, 0.0021)
        cycle.target_errors = [0.0011, 0.0009]
        cycle.spans = [
            StageSpan(name, number * S, (number + 1) * S, True)
            for number, name in enumerate(STAGES)
        ]
        run.cycles.append(cycle)
        for kind in ("hit", "miss", "refresh"):
            times = tuple(1 + 1_234_567 * k for k in range(5))
            run.passages.append(Passage(index, kind, times))
    run.image_ages_ms = [12.5, 31.25]
    run.counters = LoopCounters(5000, 4990, 3, 400, 2, 1, 4800, 0, 500.0, True)
    run.lateness_us = {"p50": 20.0, "p99": 61.0, "p999": 92.0, "max": 133.0}
    run.real_time_factors = [0.998]
    run.cpu_percent, run.rss_mb = {"cache_manager": 9.25}, {"cache_manager": 121.0}
    run.failures, run.stops = ["a <node>: 12 ms", "a <node>: 13 ms"], ["somebody: why"]
    run.trace = CycleTrace(
        cycles,
        JOINTS,
        [
            MotionSample(0.1 * k, np.array([0.1 * k, 0.5 * k]), np.array([0.1 * k, 0.5 * k]),
                         np.array([0.0, 0.1 * k]))
            for k in range(40)
        ],
        [(0.02 * k, 1.0, -2.0, 3.0 + (k > 60)) for k in range(200)],
        (Placement(0.45, 0.0, 0.01),),
    )  # fmt: skip
    run.frame = TargetFrame(np.full((24, 32, 3), 90, np.uint8), (10.0, 8.0), 3.0)
    return run


@st.composite
def _cycles(draw, index: int) -> CycleRecord:
    decisions = draw(counts)
    hits = draw(st.integers(0, decisions))
    spans, at = [], 0
    for name in draw(st.lists(st.sampled_from(STAGES), max_size=4)):
        end = at + draw(st.integers(0, 5 * S))
        spans.append(StageSpan(name, at, end, draw(st.booleans())))
        at = end
    cycle = CycleRecord(index, draw(st.booleans()), draw(st.text(max_size=8)), decisions, hits)
    cycle.behavior_hits = hits
    for name in ("duration", "touch_error", "contact_force", "final_torque", "advance", "search"):
        setattr(cycle, name, draw(small))
    cycle.target_errors, cycle.spans = draw(st.lists(small, max_size=3)), spans
    return cycle


@st.composite
def runs(draw) -> RunRecord:
    """Any run: no cycle, failed ones, figures that were not measured."""
    run = RunRecord(cycles=[draw(_cycles(index)) for index in range(1, draw(counts) % 4 + 1)])
    kinds = st.sampled_from(("hit", "miss", "refresh"))
    times = st.tuples(*(st.integers(0, 10 * S) for _ in range(5)))
    run.passages = draw(st.lists(st.builds(Passage, st.integers(1, 9), kinds, times), max_size=4))
    run.image_ages_ms = draw(st.lists(small, max_size=3))
    ticks = draw(counts)
    run.counters = LoopCounters(ticks, draw(st.integers(0, ticks)), rate_hz=draw(small))
    run.lateness_us = draw(st.dictionaries(st.sampled_from(("p50", "max")), anything))
    run.false_hits, run.decisions_unsent = draw(counts), draw(counts)
    run.real_time_factors = draw(st.lists(small, max_size=2))
    run.cpu_percent = draw(st.dictionaries(st.sampled_from(("cache_manager", "driver")), small))
    run.failures = draw(st.lists(st.text(max_size=8), max_size=2))
    run.ended_by = draw(st.sampled_from(("", "cache_manager died", "<&>")))
    joints = JOINTS[: draw(st.integers(0, 2))]
    vector = st.lists(small, min_size=len(joints), max_size=len(joints)).map(np.array)
    samples = draw(st.lists(st.tuples(vector, vector, vector), max_size=4))
    run.trace = CycleTrace(
        draw(st.integers(0, 2)),
        joints,
        [MotionSample(0.5 * number, *values) for number, values in enumerate(samples)],
        [(0.1 * number, *draw(st.tuples(small, small, small))) for number in range(3)],
        (Placement(0.4, 0.0, 0.01),) * draw(st.integers(0, 1)),
    )
    return run
