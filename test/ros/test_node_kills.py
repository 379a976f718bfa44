"""kill -9 of any one of the five nodes while the arm moves: it comes to rest, the node is named.

Times are written down, not judged: ``benchmarks/node_kills.py --check`` judges them.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from kv_action_router.reporting.kills import witnesses
from kv_action_router.ros.node_kills import kill_while_moving
from kv_action_router.ros.topics import NODES

pytestmark = [pytest.mark.dds, pytest.mark.timeout(240)]

REPORTS = Path(__file__).parents[2] / "build" / "reports" / "tests"
SPEED = 0.3  # [rad/s] reached on a busy machine, too


@pytest.mark.parametrize("node", NODES)
def test_the_arm_comes_to_rest_and_the_dead_node_is_named(node: str, ros_domain_id: int):
    report = REPORTS / f"node_kill_{node}.json"
    record = kill_while_moving(node, report.with_suffix(""), speed=SPEED)
    report.write_text(json.dumps(dataclasses.asdict(record), indent=2) + "\n")
    assert record.faults == ()
    assert record.died == (node,)
    assert record.speed >= SPEED
    assert witnesses(node) <= record.named_ms.keys()
