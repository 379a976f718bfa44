"""What counts as a fault when a node is killed, and what falls short."""

from __future__ import annotations

import dataclasses

import pytest

from kv_action_router.reporting.bounds import broken
from kv_action_router.reporting.kills import KillRecord, figures, kill_bounds

GOOD = KillRecord(
    node="cache_manager",
    controller="effort",
    speed=0.45,
    peak_speed=0.49,
    rest_ms=140.0,
    named_ms={"node_lost": 64.0, "injector_fail_safe": 61.0},
    died=("cache_manager",),
    untidy=(),
)


def test_a_kill_as_it_should_be_has_no_fault():
    assert GOOD.faults == ()


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"rest_ms": None}, "did not come to rest"),
        ({"named_ms": {"node_lost": 64.0}}, "injector_fail_safe did not name cache_manager"),
        ({"died": ("cache_manager", "simulation")}, "simulation died too"),
        ({"died": ()}, "the death of cache_manager went unnoticed"),
        ({"untidy": ("simulation ended with code 1",)}, "simulation ended with code 1"),
    ],
)
def test_faults_are_named(change: dict[str, object], fault: str):
    record = dataclasses.replace(GOOD, **change)
    assert len(record.faults) == 1 and fault in record.faults[0]


@pytest.mark.parametrize(
    ("node", "detector"),
    [("failure_monitor", "injector_fail_safe"), ("actuator_injector", "node_lost")],
)
def test_nobody_need_name_itself(node: str, detector: str):
    record = dataclasses.replace(GOOD, node=node, died=(node,), named_ms={detector: 60.0})
    assert record.faults == ()


def test_figures_are_the_records_and_good_ones_keep_the_bounds():
    slower = dataclasses.replace(GOOD, rest_ms=180.0)
    report = figures([GOOD, slower])
    found = report["nodes"]["cache_manager"]
    assert found["rest_ms"]["n"] == 2
    assert found["rest_ms"]["max"] == 180.0
    assert found["named_ms"]["max"] == 61.0
    assert not broken(report, kill_bounds(["cache_manager"]), essential_only=False)


@pytest.mark.parametrize(
    "change", [{"rest_ms": 200.1}, {"rest_ms": None}, {"named_ms": {}}, {"died": ()}]
)
def test_one_bad_kill_falls_short(change: dict[str, object]):
    report = figures([dataclasses.replace(GOOD, **change)])
    short = broken(report, kill_bounds(["cache_manager"]), essential_only=False)
    assert short and all("cache_manager" in line for line in short)
