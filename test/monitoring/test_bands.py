"""Samples that change nothing are not judged, and nothing is overlooked for it."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from monitoring_builders import MS, drives, feedback, task_state, wrench

from kv_action_router.contracts import InjectorState
from kv_action_router.monitoring.bands import quiet_band, quiet_bands
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.monitoring.monitor import FailureMonitor, Verdict
from kv_action_router.monitoring.samples import LIFECYCLE_ACTIVE, HeartbeatSample
from kv_action_router.tasks.conditions import parse_condition, parse_conditions
from kv_action_router.tasks.rule_file import parse_rules

INF = math.inf


def condition(operator: str, limit: float, signal: str = "wrench_force", **more: float):
    return parse_condition({"name": "c", "signal": signal, "op": operator, "limit": limit, **more})


MULTI = parse_condition(
    {
        "name": "both",
        "all": [
            {"signal": "motion_phase", "op": ">=", "limit": 1.0},
            {"signal": "joint_speed", "op": "<", "limit": 0.1},
        ],
    }
)


def test_a_band_ends_at_the_limit() -> None:
    assert quiet_band(condition(">", 5.0)) == (-INF, 5.0)
    assert quiet_band(condition(">=", 5.0, clear_limit=3.0)) == (-INF, 5.0)
    assert quiet_band(condition("<", 2.0)) == (2.0, INF)
    assert quiet_band(condition("jump", 2.0)) is None
    assert quiet_band(MULTI) is None


def test_the_narrowest_of_all_conditions_counts() -> None:
    names = ("wrench_force", "motion_phase", "joint_speed", "key_age", "image_age")
    conditions = [
        condition(">", 60.0),
        condition(">", 5.0),
        condition("<", -1.0),
        condition(">", 0.3, "image_age"),
        condition("jump", 0.1, "image_age"),
        MULTI,
    ]
    assert quiet_bands(names, conditions) == {"wrench_force": (-1.0, 5.0), "key_age": (-INF, INF)}


PLAIN = [
    {"signal": "wrench_force", "op": ">", "limit": 60.0, "clear_limit": 40.0, "held_ms": 3,
     "response": "brake"},
    {"signal": "wrench_force", "op": ">", "limit": 15.0, "held_ms": 20, "layer": "task",
     "response": "complete"},
    {"signal": "drive_temperature", "op": ">", "limit": 70.0, "clear_limit": 65.0,
     "layer": "execution", "response": "derate"},
    {"signal": "heartbeat_age", "op": ">", "limit": 0.06, "clear_limit": 0.03,
     "response": "brake"},
]  # fmt: skip
LOUD = [
    {"signal": "wrench_force", "op": "<=", "limit": 1.0, "clear_limit": 3.0, "held_ms": 12,
     "max_gap_ms": 100, "response": "none"},
    {"signal": "wrench_force", "op": "jump", "limit": 30.0, "response": "none"},
    {"all": [{"signal": "wrench_force", "op": ">", "limit": 8.0, "clear_limit": 4.0},
             {"signal": "joint_speed", "op": "<", "limit": 0.2, "clear_limit": 0.4}],
     "held_ms": 15, "max_gap_ms": 200, "response": "interrupt"},
]  # fmt: skip
STAGES = {
    "touch": (
        [{"name": "contact", "signal": "wrench_force", "op": ">", "limit": 5.0, "held_ms": 20}],
        [{"name": "no", "signal": "motion_phase", "op": ">=", "limit": 1.0, "held_ms": 40}],
    ),
    "retreat": (
        [
            {
                "name": "home",
                "all": [
                    {"signal": "motion_phase", "op": ">=", "limit": 1.0},
                    {"signal": "joint_speed", "op": "<", "limit": 0.1, "clear_limit": 0.3},
                    {"signal": "tracking_error", "op": "<", "limit": 0.05},
                ],
                "held_ms": 30,
            }
        ],
        [{"name": "bump", "signal": "wrench_force", "op": "jump", "limit": 40.0}],
    ),
    "lift": (
        [
            {
                "name": "free",
                "signal": "wrench_force",
                "op": "<",
                "limit": 2.0,
                "clear_limit": 6.0,
                "held_ms": 25,
                "max_gap_ms": 150,
            }
        ],
        [
            {
                "name": "pulls",
                "all": [
                    {"signal": "wrench_force", "op": ">", "limit": 10.0, "clear_limit": 4.0},
                    {"signal": "joint_speed", "op": "<", "limit": 0.3},
                ],
                "held_ms": 10,
                "max_gap_ms": 300,
            }
        ],
    ),
}


def monitor(table: list[dict]) -> FailureMonitor:
    rows = [
        {"name": f"row{i}", "severity": "info", "error_code": 550 + i, "message": "m", **row}
        for i, row in enumerate(table)
    ]

    def stage(task: str, name: str) -> SimpleNamespace:
        end, failure = STAGES[name]
        return SimpleNamespace(end=parse_conditions(end), failure=parse_conditions(failure))

    return FailureMonitor(
        parse_rules({"conditions": rows}),
        stage,
        nodes=("manager",),
        config=MonitorConfig(settle=0.0, repeat_period=0.1),
    )


def judging_all(table: list[dict]) -> FailureMonitor:
    """Return a monitor to which every sample is a change, and every update due."""
    subject = monitor(table)
    subject._set_bands = lambda: subject.table.set_bands({})  # type: ignore[method-assign]
    subject.reset()
    judge = subject._judge

    def always(now_ns: int, among: Any = None) -> None:
        subject.stages.due_ns = 0
        judge(now_ns, among)

    subject._judge = always  # type: ignore[method-assign]
    return subject


force = st.sampled_from([0.0, 0.5, 1.5, 2.5, 4.5, 5.5, 9.0, 16.0, 16.0, 70.0, math.nan])
steps = st.fixed_dictionaries(
    {
        "repeat": st.sampled_from([1, 1, 2, 8]),
        "ms": st.sampled_from([4, 4, 5, 5, 6, 16, 60]),
        "forces": st.lists(force, max_size=2),
        "lag": st.sampled_from([0, 0, 8]),
        "feedback": st.booleans(),
        "state": st.sampled_from([InjectorState.FOLLOW] * 3 + [InjectorState.STOPPED]),
        "phase": st.sampled_from([0.5, 1.0]),
        "speed": st.sampled_from([0.0, 0.15, 0.25, 0.5]),
        "error": st.sampled_from([0.0, 0.04, 0.1]),
        "beat": st.booleans(),
        "temperature": st.sampled_from([40.0, 68.0, 72.0, None]),
        "stage": st.sampled_from([None, None, None, *STAGES]),
    }
)


def flat(verdict: Verdict) -> str:
    return repr((verdict.reports, verdict.conditions, verdict.responses, verdict.requests))


@pytest.mark.parametrize("table", [PLAIN, PLAIN + LOUD], ids=["plain", "loud"])
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(steps, min_size=10, max_size=25))
def test_what_is_not_judged_would_have_changed_nothing(
    table: list[dict], sequence: list[dict]
) -> None:
    subjects = monitor(table), judging_all(table)
    now, decision = 10_000 * MS, 7
    start = [wrench(now / MS - 40 + 2 * i, 0.0) for i in range(16)]
    begin = [task_state("touch", decision), *start, feedback(now / MS, decision)]
    for subject in subjects:
        subject.update(now, begin)
        subject.update(now, [feedback(now / MS, decision)])  # at rest now
        assert subject.detectors.contact.has_tare
        assert subject.stages.in_force
    for step in sequence:
        if step["stage"] is not None:
            decision += 1
        for index in range(step["repeat"]):
            now += step["ms"] * MS
            ms = now / MS
            samples: list[object] = []
            if step["stage"] is not None and index == 0:
                samples.append(task_state(step["stage"], decision, index=decision))
            samples += [wrench(ms - 2 + i, z) for i, z in enumerate(step["forces"])]
            if step["feedback"]:
                samples.append(
                    feedback(
                        ms - step["lag"],
                        decision,
                        state=step["state"],
                        phase=step["phase"],
                        velocity=(step["speed"], 0.0),
                        setpoint=(step["error"], 0.0),
                    )
                )
            if step["temperature"] is not None:
                samples.append(drives(ms, [step["temperature"], 40.0]))
            if step["beat"]:
                samples.append(HeartbeatSample("manager", LIFECYCLE_ACTIVE, now))
            found, all_found = (flat(subject.update(now, samples)) for subject in subjects)
            assert found == all_found


def started(stage: str, *, since: int = 10_000 * MS) -> tuple[FailureMonitor, int]:
    """Return a monitor with a tare, the stage's motion in force since an instant, and now."""
    subject, now = monitor(PLAIN), 10_000 * MS
    start = [wrench(now / MS - 40 + 2 * i, 0.0) for i in range(16)]
    subject.update(now, [task_state("touch", 6), *start, feedback(now / MS, 6)])
    subject.update(now, [feedback(now / MS, 6)])
    assert subject.detectors.contact.has_tare
    subject.update(now, [task_state(stage, 7, index=2, allowed_contact="target")])
    if since <= now:
        subject.update(now, [feedback(since / MS, 7)])
    return subject, now


def test_a_silent_signal_breaks_a_condition_of_several_when_it_turns_stale() -> None:
    subject, now = started("lift")
    subject.update(now + 5 * MS, [wrench(10_005, 12.0), feedback(10_005, 7)])  # above 10 N
    for ms in range(10, 40, 5):  # stale after 15 ms, though samples may be 300 ms apart
        subject.update(now + ms * MS)
    for ms in range(40, 80, 5):
        sample = wrench(10_000 + ms, 7.0)  # holds only what has held without a break
        verdict = subject.update(now + ms * MS, [sample, feedback(10_000 + ms, 7)])
        assert list(verdict.conditions) == []


def test_what_came_before_the_motion_was_known_to_be_in_force_counts() -> None:
    subject, now = started("touch", since=10_001 * MS)
    subject.update(now + 8 * MS, [wrench(10_006, 9.0)])
    subject.update(now + 12 * MS, [feedback(10_004, 7)])  # it has been in force since 10004
    subject.update(now + 14 * MS, [wrench(10_013, 9.0)])
    verdict = subject.update(now + 27 * MS, [wrench(10_026, 9.0)])
    assert [found.condition for found in verdict.conditions] == ["contact"]
    assert verdict.conditions[0].held == pytest.approx(0.020)
