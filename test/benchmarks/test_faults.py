"""What a campaign of faults does when a system does not come up, or does not recover."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

import faults

from kv_action_router.errors import RouterError
from kv_action_router.reporting.faults import FaultRecord
from kv_action_router.ros.fault_bench import Injection


def injection(name: str) -> Injection:
    return Injection(name, "", 0.0, 0.1, lambda bench: None, lambda bench: None)


class FakeBench:
    """Puts faults in at once."""

    def __init__(self, false_starts: int, recovers: bool) -> None:
        self.false_starts = ["did not move"] * false_starts
        self._recovers = recovers

    def inject(self, fault: Injection, speed: float) -> FaultRecord:
        again = len(self.false_starts)
        return FaultRecord(
            fault.name, "", 0.0, speed, None, 0.1, 0.1, "succeeded", (), False, False, (), again
        )

    def recover(self) -> None:
        if not self._recovers:
            raise RouterError("stop not released")


def run(monkeypatch: Any, benches: list[FakeBench | None], names: str) -> faults.Campaign:
    """Run a campaign; None = a system that does not come up."""

    @contextmanager
    def running(system: Any, folder: Path) -> Iterator[FakeBench]:
        bench = benches.pop(0) if benches else None
        if bench is None:
            raise RouterError("did not come up")
        yield bench

    monkeypatch.setattr(faults, "running", running)
    campaign = faults.Campaign()
    made = [injection(name) for name in names]
    faults.run("run", None, made, Path("unused"), campaign, campaign.records.append)
    return campaign


def test_every_beginning_anew_is_counted_with_the_fault_that_waited(monkeypatch: Any) -> None:
    benches = [None, FakeBench(2, recovers=True), FakeBench(0, recovers=True)]
    campaign = run(monkeypatch, benches, "ab")
    assert [(r.name, r.begun_again) for r in campaign.records] == [("a", 3), ("b", 0)]
    assert campaign.repeats == [
        "a: a fresh system, did not come up",
        "a: did not move",
        "a: did not move",
    ]
    assert campaign.report()["begun_again"] == 3
    assert campaign.missing == []


def test_what_did_not_recover_gets_a_fresh_system(monkeypatch: Any) -> None:
    benches = [FakeBench(0, recovers=False), FakeBench(0, recovers=False)]
    campaign = run(monkeypatch, benches, "ab")  # behind the last fault nothing has to recover
    assert [(r.name, r.begun_again) for r in campaign.records] == [("a", 0), ("b", 1)]
    assert campaign.repeats == ["b: a fresh system, stop not released"]


def test_what_never_came_up_is_missing_and_named(monkeypatch: Any) -> None:
    campaign = run(monkeypatch, [], "a")
    assert campaign.records == []
    assert len(campaign.repeats) == 1 + faults.SPARE_SYSTEMS
    assert campaign.missing == ["a: no system came up"]
