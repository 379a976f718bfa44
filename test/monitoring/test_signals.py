"""The signal table: sources apart, ages respected, nothing invented."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.errors import MonitoringError
from kv_action_router.monitoring.signals import NEVER, SignalTable, SignalView
from kv_action_router.tasks.signals import SIGNALS

MS = 1_000_000


def test_a_value_is_read_until_it_is_stale() -> None:
    table = SignalTable()
    table.put("wrench_force", 3.0, 100 * MS)
    edge = 100 * MS + int(SIGNALS["wrench_force"].stale_after_ms * MS)
    assert table.value("wrench_force", edge) == 3.0
    assert math.isnan(table.value("wrench_force", edge + 1))


def test_a_value_from_before_does_not_count() -> None:
    table = SignalTable()
    table.put("wrench_force", 3.0, 100 * MS)
    assert table.value("wrench_force", 101 * MS, since_ns=100 * MS) == 3.0
    assert math.isnan(table.value("wrench_force", 101 * MS, since_ns=100 * MS + 1))


def test_sources_are_apart_and_together_the_largest() -> None:
    table = SignalTable()
    table.put("tracking_error", 0.1, 0, "elbow")
    table.put("tracking_error", 0.3, 0, "wrist")
    assert table.value("tracking_error", 0, source="elbow") == 0.1
    assert table.value("tracking_error", 0) == 0.3
    assert math.isnan(table.value("tracking_error", 0, source="ankle"))
    assert table.sources(["tracking_error"]) == ("elbow", "wrist")
    table.put("tracking_error", math.nan, 0, "elbow")
    assert math.isnan(table.value("tracking_error", 0))
    table.forget("tracking_error", "elbow")
    assert table.value("tracking_error", 0) == 0.3


def test_a_single_value_serves_every_source() -> None:
    """So a condition may combine a drive's temperature with the speed of the whole arm."""
    table = SignalTable()
    table.put("joint_speed", 0.2, 5, "")
    table.put("drive_temperature", 60.0, 3, "elbow")
    assert table.sources(["joint_speed", "drive_temperature"]) == ("elbow",)
    assert table.value("joint_speed", 5, source="elbow") == 0.2
    assert table.receipt_ns(["joint_speed", "drive_temperature"], "elbow") == 3


def test_unknown_and_missing_signals() -> None:
    table = SignalTable()
    with pytest.raises(MonitoringError, match=r"'wrench_forc'.*'wrench_force'"):
        table.put("wrench_forc", 1.0, 0)
    assert math.isnan(table.value("nothing_like_it", 0))
    assert table.receipt_ns(["wrench_force"]) == 0
    assert table.sources(["wrench_force"]) == ("",)


def test_changed_signals_are_handed_out_once() -> None:
    table = SignalTable()
    table.put("joint_speed", 0.0, 0)
    table.put("joint_speed", 0.0, 1)
    assert table.take_changed() == {"joint_speed"}
    assert table.take_changed() == set()


def test_inside_its_band_a_sample_is_no_change() -> None:
    table = SignalTable()
    table.set_bands({"joint_speed": (0.0, 1.0)})
    for value in (0.5, math.nan):
        table.put("joint_speed", value, 0)
        assert table.take_changed() == set()
    for value in (0.0, 1.0, -2.0, math.inf):
        table.put("joint_speed", value, 0)
        assert table.take_changed() == {"joint_speed"}
    table.put("motion_phase", 0.5, 0)  # has no band
    assert table.take_changed() == {"motion_phase"}
    table.forget("motion_phase")
    assert table.take_changed() == {"motion_phase"}
    table.set_bands({})
    table.put("joint_speed", 0.5, 0)
    assert table.take_changed() == {"joint_speed"}


def test_the_first_value_to_turn_stale_is_told() -> None:
    table = SignalTable()
    names = ("joint_speed", "wrench_force")
    assert table.turns_stale_ns(names, 0) == NEVER
    table.put("joint_speed", 0.5, 10 * MS)  # stale after 50 ms
    table.put("wrench_force", 0.5, 20 * MS)  # stale after 15 ms
    for now, until in ((20, 35), (35, 35), (36, 60), (61, None)):
        due = table.turns_stale_ns(names, now * MS)
        assert due == (NEVER if until is None else until * MS)
    assert not math.isnan(table.value("wrench_force", 35 * MS))
    assert math.isnan(table.value("wrench_force", 35 * MS + 1))


def test_a_view_reads_one_source() -> None:
    table = SignalTable()
    table.put("tracking_error", 0.1, 10, "elbow")
    view = SignalView(table)
    view.now_ns, view.source = 10, "elbow"
    assert view.get("tracking_error") == 0.1
    view.since_ns = 11
    assert math.isnan(view.get("tracking_error"))


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(-1e3, 1e3), min_size=1),
    st.integers(0, 40),
)
def test_the_whole_is_the_largest_of_fresh_sources(values: dict[str, float], age_ms: int) -> None:
    table = SignalTable()
    for source, value in values.items():
        table.put("tracking_error", value, 0, source)
    assert table.value("tracking_error", age_ms * MS) == max(values.values())
