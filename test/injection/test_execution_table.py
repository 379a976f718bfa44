"""Execution values in force: whole, bounded, versioned, and never seen half-written."""

from __future__ import annotations

import dataclasses
import math
import threading

import numpy as np
import pytest
from injection_builders import TwoJoints, execution_value, with_slot

from kv_action_router.contracts import SLOT_NAMES
from kv_action_router.errors import InputError, StaleVersionError
from kv_action_router.injection.execution_table import ExecutionTable
from kv_action_router.robots.execution_values import SLOT_BOUNDS


def table() -> ExecutionTable:
    return ExecutionTable(TwoJoints(), execution_value())


def test_limits_are_the_smallest_of_stage_protection_and_model() -> None:
    value = with_slot(execution_value(stage_effort_limit=30.0), 1, "protective_effort_limit", 20.0)
    value = with_slot(value, 0, "stage_velocity_limit", 0.5)
    value = with_slot(value, 1, "acceleration_limit", 1000.0)
    snapshot = ExecutionTable(TwoJoints(), value).current
    assert snapshot.effort_limit == (30.0, 20.0)
    assert snapshot.velocity_limit == (0.5, 2.0)
    assert snapshot.acceleration_limit == (10.0, 10.0)


def test_derating_scales_the_effort_limits() -> None:
    value = with_slot(execution_value(), 0, "derating", 0.5)
    snapshot = ExecutionTable(TwoJoints(), value).current
    assert snapshot.effort_limit == (25.0, 50.0)
    assert snapshot.derated


def test_drives_in_another_order_reach_their_joints() -> None:
    value = with_slot(execution_value(), 0, "derating", 0.5)
    swapped = dataclasses.replace(
        value, drives=("b", "a"), slots=value.slots[::-1], confident=np.array([True, False])
    )
    snapshot = ExecutionTable(TwoJoints(), swapped).current
    assert snapshot.effort_limit == (25.0, 50.0)
    assert snapshot.value.confident.tolist() == [False, True]


@pytest.mark.parametrize("drives", [("a",), ("a", "c"), ("a", "a"), ("a", "b", "c")])
def test_other_drives_are_refused(drives: tuple[str, ...]) -> None:
    value = dataclasses.replace(execution_value(version=2, base=1), drives=drives)
    with pytest.raises(InputError, match="drives must be a, b, each once"):
        table().apply(value)


@pytest.mark.parametrize("name", SLOT_NAMES)
@pytest.mark.parametrize("bad", [math.nan, math.inf, "below", "above"])
def test_each_slot_is_checked_and_named(name: str, bad: float | str) -> None:
    low, high = SLOT_BOUNDS[name]
    number = {"below": low - 1.0, "above": 1.01 * high + 1.0}.get(bad, bad)
    value = with_slot(execution_value(version=2, base=1), 1, name, number)
    subject = table()
    with pytest.raises(InputError, match=rf"b\.{name} must be finite"):
        subject.apply(value)
    assert subject.current.value.version == 1


def test_versions_are_compared_and_set() -> None:
    subject = table()
    subject.apply(execution_value(version=2, base=1))
    with pytest.raises(StaleVersionError, match="made from version 1, version 2 is in force"):
        subject.apply(execution_value(version=3, base=1))
    with pytest.raises(StaleVersionError, match="is not newer"):
        subject.apply(execution_value(version=2, base=2))
    in_force = subject.current
    assert subject.apply(execution_value(version=2, base=1)) is in_force  # no news
    assert subject.apply(execution_value(version=3, base=2)).value.version == 3


def test_the_file_s_values_give_way_to_the_durable_copy_once() -> None:
    subject = table()
    assert subject.apply(execution_value(version=17, base=3)).value.version == 17
    with pytest.raises(StaleVersionError):
        subject.apply(execution_value(version=30, base=3))


def test_versions_that_were_not_heard_of_are_in_the_newest() -> None:
    subject = table()
    subject.apply(execution_value(version=2, base=1))
    assert subject.apply(execution_value(version=5, base=4)).value.version == 5


def test_what_the_loop_has_changed_is_not_lost_by_a_value_that_does_not_know_of_it() -> None:
    subject = table()
    subject.apply(execution_value(version=2, base=1))
    own = execution_value(version=3, base=2, derating=0.6)
    subject.swap(own)
    with pytest.raises(StaleVersionError, match="made from version 4, version 3 is in force"):
        subject.apply(execution_value(version=5, base=4))
    subject.apply(own)  # the durable copy has it: what comes behind knows of it
    assert subject.apply(execution_value(version=5, base=4)).value.version == 5


def test_a_snapshot_cannot_be_written_into() -> None:
    value = table().current.value
    with pytest.raises(ValueError, match="read-only"):
        value.slots[0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        value.confident[0] = False


def test_trims_are_part_of_what_is_published() -> None:
    subject = table()
    subject.acceleration_trim = (1.0, 2.0, 3.0)
    assert subject.published().slots[:, :3].tolist() == [[1.0, 2.0, 3.0]] * 2
    assert subject.current.value.slots[:, :3].tolist() == [[0.0, 0.0, 0.0]] * 2


class InPlace:
    """What the table would be without its protection: one array that is overwritten."""

    def __init__(self) -> None:
        self._slots = execution_value().slots.copy()
        self.current = self

    @property
    def rows(self) -> tuple[float, float]:
        return float(self._slots[0, 3]), float(self._slots[-1, -1])

    def write(self, number: float) -> None:
        for row in self._slots:
            for index in range(row.size):
                row[index] = number


class Swapped:
    """The table, with every slot of a value set to one number."""

    def __init__(self) -> None:
        self._table = table()
        self._version = 1

    @property
    def rows(self) -> tuple[float, float]:
        slots = self._table.current.value.slots
        return float(slots[0, 3]), float(slots[-1, -1])

    def write(self, number: float) -> None:
        value = execution_value(self._version + 1, self._version)
        # one number fits the bounds of all slots but those that hold shares
        slots = value.slots.copy()
        slots[0, 3] = slots[-1, -1] = number
        self._table.apply(dataclasses.replace(value, slots=slots))
        self._version += 1


def torn_reads(subject: InPlace | Swapped, writes: int) -> int:
    """Return how many reads saw two numbers, while another thread writes."""
    torn, done = 0, threading.Event()

    def write() -> None:
        for index in range(writes):
            subject.write(1.0 + index % 7)
        done.set()

    subject.write(1.0)
    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        first, last = subject.rows
        torn += first != last
    writer.join()
    return torn


def test_no_reader_sees_half_of_a_value() -> None:
    assert torn_reads(Swapped(), 300) == 0


def test_the_same_reader_does_see_it_without_the_protection() -> None:
    assert any(torn_reads(InPlace(), 2000) for _ in range(20))
