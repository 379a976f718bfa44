"""Statistics reach their message with every counter."""

from __future__ import annotations

import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from kv_action_router.caching.statistics import LayerCounters, LayerReport
from kv_action_router.msg import LayerStatistics
from kv_action_router.ros.conversions.statistics import (
    cache_report_to_msg,
    layer_report_to_msg,
)


def test_every_field_of_a_layer_is_filled() -> None:
    names = list(LayerCounters.__slots__)
    counters = LayerCounters(**{name: 10 + number for number, name in enumerate(names)})
    message = layer_report_to_msg(LayerReport("task", "r1", 3, 100, 1, counters))
    fields = set(LayerStatistics.get_fields_and_field_types())
    assert fields == {"layer", "domain", "entries", "capacity", "entries_not_confident", *names}
    assert (message.layer, message.domain, message.entries, message.capacity) == (
        "task",
        "r1",
        3,
        100,
    )
    assert [getattr(message, name) for name in names] == [10 + n for n in range(len(names))]


def test_a_report_of_an_empty_cache(build) -> None:
    message = cache_report_to_msg(build.manager().statistics(), "r1")
    assert message.robot_id == "r1"
    assert [layer.layer for layer in message.layers] == ["task", "behavior"]
    assert message.match_time_p50_us != message.match_time_p50_us  # NaN: none yet
