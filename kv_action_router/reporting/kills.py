"""What happened when nodes were killed while the arm moved, and the bound on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import summary

REST_LIMIT_MS = 200.0
MONITOR, INJECTOR = "node_lost", "injector_fail_safe"  # detectors
# Monitor and injector both watch all heartbeats, but none watches its own.
_OWN_DETECTOR = {"failure_monitor": MONITOR, "actuator_injector": INJECTOR}


def witnesses(node: str) -> frozenset[str]:
    """Return the detectors that must name a node when it is killed."""
    return frozenset((MONITOR, INJECTOR)) - {_OWN_DETECTOR.get(node)}


@dataclass(frozen=True)
class KillRecord:
    """One node killed while the arm moved.

    Attributes:
        node: that was killed.
        controller: command interface of the drives.
        speed: of the fastest joint when it was killed [rad/s].
        peak_speed: of the fastest joint from then on [rad/s].
        rest_ms: from the kill to the arm at rest for good [ms]; None = it did not come to rest.
        named_ms: detector -> when its report that names the node was received after the kill [ms].
        died: processes that ended without having been asked to, in the order of their ends.
        untidy: what went wrong when the rest was ended, for people.
    """

    node: str
    controller: str
    speed: float
    peak_speed: float
    rest_ms: float | None
    named_ms: dict[str, float]
    died: tuple[str, ...]
    untidy: tuple[str, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """What should not have happened, times apart; for people."""
        faults = list(self.untidy)
        if self.rest_ms is None:
            faults.append("the arm did not come to rest")
        silent = sorted(witnesses(self.node) - self.named_ms.keys())
        faults += [f"{detector} did not name {self.node}" for detector in silent]
        faults += [f"{name} died too" for name in self.died if name != self.node]
        if self.node not in self.died:
            faults.append(f"the death of {self.node} went unnoticed")
        return tuple(faults)


def figures(records: Sequence[KillRecord]) -> dict[str, Any]:
    """Return the report: a summary for each node, and every kill."""
    nodes: dict[str, Any] = {}
    for node in dict.fromkeys(record.node for record in records):
        kills = [record for record in records if record.node == node]
        times = [record.rest_ms for record in kills if record.rest_ms is not None]
        named = [min(record.named_ms.values()) for record in kills if record.named_ms]
        nodes[node] = {
            "rest_ms": summary(times),
            "named_ms": summary(named),
            "peak_speed": summary([record.peak_speed for record in kills]),
            "faults": [fault for record in kills for fault in record.faults],
            "fault_count": sum(len(record.faults) for record in kills),
        }
    return {"nodes": nodes, "kills": [dataclasses.asdict(record) for record in records]}


def kill_bounds(nodes: Sequence[str]) -> tuple[Bound, ...]:
    """Return the bounds on :func:`figures`."""
    return tuple(
        bound
        for node in nodes
        for bound in (
            Bound(
                f"{node} killed: rest max [ms]",
                at("nodes", node, "rest_ms", "max"),
                "<=",
                REST_LIMIT_MS,
            ),
            Bound(f"{node} killed: faults", at("nodes", node, "fault_count"), "==", 0),
        )
    )
