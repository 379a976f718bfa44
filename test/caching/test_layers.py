"""The layers: values come back as they went in, and a reader never sees a half-written one."""

from __future__ import annotations

import dataclasses
import sys
import threading
import time

import numpy as np
import pytest

from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.eviction import LeastRecentlyUsed
from kv_action_router.caching.key_index import prepare_key
from kv_action_router.caching.layers.behavior import BehaviorLayer, BehaviorSize, check_behavior
from kv_action_router.caching.layers.execution import ExecutionLayer
from kv_action_router.caching.layers.slots import SlotPool
from kv_action_router.caching.partitions import Partition
from kv_action_router.contracts import BehaviorValue, Pose
from kv_action_router.errors import EntryInvalidError, EntryNotFoundError, StaleVersionError

SIZE = BehaviorSize()
PARTITION = Partition("r1", "e1", "touch", "touch_approach_v1", -1)


class UnprotectedPool(SlotPool):
    """What the layers would be without the protection: a slot is reused at once, changes unseen."""

    def claim(self) -> int:
        slot = self._free.pop() if self._free else super().claim()
        self.stamp += 1
        return slot

    def intact(self, slot: int, since: int) -> bool:
        return True


class TestBehaviorLayer:
    @pytest.mark.parametrize("acts_on_target", [True, False])
    @pytest.mark.parametrize("points", [6, 40])
    def test_reads_what_was_written(self, build, points: int, acts_on_target: bool) -> None:
        layer = BehaviorLayer(4, SIZE)
        layer.put(build.behavior(points=50, mark=3.0))  # something longer before it
        layer.release(0)
        value = build.behavior((0.1, 0.2, 0.3), points=points, acts_on_target=acts_on_target)
        read = layer.read(layer.put(value))
        for field in dataclasses.fields(BehaviorValue):
            got, put = getattr(read, field.name), getattr(value, field.name)
            if isinstance(put, Pose):
                assert np.array_equal(got.position, put.position)
                assert np.array_equal(got.orientation, put.orientation)
            elif isinstance(put, np.ndarray):
                assert got.shape == put.shape
                assert np.array_equal(got, put)
            else:
                assert got == put

    def test_single_precision_takes_half_of_the_memory_and_rounds(self, build) -> None:
        double, single = (
            BehaviorLayer(4, BehaviorSize(168, 34, 6, precision))
            for precision in ("double", "single")
        )
        assert double.largest_value - single.largest_value == 168 * 4
        value = build.behavior((0.1, -2.7, 3.1), mark=0.123456789)
        read = single.read(single.put(value))
        assert read.coefficients.dtype == np.float64
        assert 0.0 < np.abs(read.coefficients - value.coefficients).max() <= 1.2e-7
        assert np.array_equal(read.knots, value.knots)

    def test_what_was_read_is_a_copy(self, build) -> None:
        layer = BehaviorLayer(4, SIZE)
        slot = layer.put(build.behavior(mark=1.0))
        read = layer.read(slot)
        layer.write(slot, build.behavior(mark=2.0))
        assert read.coefficients[1, 0] == 1.0


class TestCheckBehavior:
    def test_takes_a_good_one(self, build) -> None:
        value = build.behavior()
        assert check_behavior(value, SIZE) is value

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"coefficients": np.zeros((0, 3))}, "at least one point"),
            ({"coefficients": np.zeros((3, 3))}, "degree"),
            ({"coefficients": np.zeros(36)}, "two-dimensional"),
            ({"coefficients": np.zeros((12, 2))}, "3 columns"),
            ({"coefficients": np.full((12, 3), np.nan)}, "finite"),
            ({"knots": np.zeros(18)}, "duration"),
            ({"knots": np.linspace(0, 1, 17)}, "18 values"),
            ({"knots": np.linspace(0, 1, 18)}, "clamped"),
            ({"knots": np.linspace(1, 0, 18)}, "rising"),
            ({"knots": np.full(18, np.inf)}, "finite"),
            ({"dimensions": ("a/position", "a/position", "b/position")}, "repetition, got 'a/pos"),
            ({"dimensions": ("a", "b", "c")}, "joint/interface"),
            ({"dimensions": ()}, "columns"),
            ({"degree": 0}, "degree"),
            ({"degree": 10}, "degree"),
            ({"phase": 1.5}, "phase"),
            ({"phase": float("nan")}, "phase"),
            ({"decay": np.ones(2)}, "decay"),
            ({"decay": np.array([1.0, np.nan, 1.0])}, "decay"),
            ({"subtask": ""}, "subtask must have 1 to 256 characters, got 0"),
            ({"subtask": "touch_approach"}, "with its version, .* got 'touch_approach'"),
            ({"target": Pose(np.full(3, np.nan))}, "target.position"),
            ({"target": Pose(np.zeros(3), np.zeros(4))}, "unit quaternion"),
        ],
    )
    def test_refuses_others_with_field_limit_and_value(self, build, changes, message) -> None:
        with pytest.raises(EntryInvalidError, match=message):
            check_behavior(dataclasses.replace(build.behavior(), **changes), SIZE)

    def test_refuses_what_has_no_room(self, build) -> None:
        with pytest.raises(EntryInvalidError, match="at most 30"):
            check_behavior(build.behavior(), BehaviorSize(coefficients=30))
        with pytest.raises(EntryInvalidError, match="at most 10"):
            check_behavior(build.behavior(), BehaviorSize(knots=10))
        with pytest.raises(EntryInvalidError, match="none"):
            check_behavior(None, SIZE)


def test_largest_entry_is_what_the_arrays_take() -> None:
    """Key 56 x 4, partition, behavior and four counters 4 each, two of 8, a bit; and the value."""
    entries = EntryTable(10, BehaviorSize(168, 34, 6), LeastRecentlyUsed(), 0.99)
    task = 56 * 4 + 6 * 4 + 2 * 8 + 1
    value = (168 + 34 + 6 + 7 + 1) * 8 + 8
    assert entries.largest_entry == task + value


class TestExecutionLayer:
    def test_compare_and_set(self, build) -> None:
        layer = ExecutionLayer()
        layer.replace("r1", build.execution(1, 0))
        layer.replace("r1", build.execution(2, 1))
        for stale in (build.execution(3, 1), build.execution(2, 2), build.execution(1, 2)):
            with pytest.raises(StaleVersionError):
                layer.replace("r1", stale)
        assert layer.value("r1").version == 2
        assert layer.value("r2") is None

    def test_a_restarted_manager_catches_up(self, build) -> None:
        layer = ExecutionLayer()
        layer.replace("r1", build.execution(1, 0))
        layer.replace("r1", build.execution(9, 8))
        assert layer.value("r1").version == 9

    def test_versions_go_on_after_a_drop(self, build) -> None:
        layer = ExecutionLayer()
        layer.replace("r1", build.execution(4, 0))
        assert layer.drop("r1") == 2
        with pytest.raises(EntryNotFoundError):
            layer.drop("r1")
        with pytest.raises(StaleVersionError):
            layer.replace("r1", build.execution(2, 1))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"drives": ("a", "a")}, "repetition"),
            ({"drives": ("a",)}, "execution.slots must be of shape"),
            ({"slots": np.full((2, 32), 1e6)}, "must be finite, -50 to 50"),
            ({"drives": ()}, "1 to"),
            (
                {"slots": np.full((2, 32), np.nan, dtype=np.float32)},
                "a.acceleration_trim_x must be finite",
            ),
            ({"confident": np.ones(3, dtype=bool)}, "2 bits"),
        ],
    )
    def test_refuses_bad_ones(self, build, changes, message: str) -> None:
        layer = ExecutionLayer()
        with pytest.raises(EntryInvalidError, match=message):
            layer.replace("r1", build.execution(1, 0, **changes))
        assert layer.value("r1") is None

    def test_ticks_survive_a_restart_of_the_injector(self, build) -> None:
        layer = ExecutionLayer()
        for ticks, confident in ((100, 90), (200, 180), (50, 50), (60, 50)):
            layer.count_ticks("r1", ticks, confident)
        assert layer.ticks("r1").ticks == 260
        assert layer.ticks("r1").confident == 230


def table(pool: type[SlotPool] = SlotPool) -> EntryTable:
    entries = EntryTable(4, SIZE, LeastRecentlyUsed(), 0.99)
    entries.tasks.pool = pool(4)
    entries.behaviors.pool = pool(4)
    return entries


def read_whole(entries: EntryTable, key, partitions: list[int], searcher) -> BehaviorValue | None:
    """Read as the matcher does: look again when what was read has been given away."""
    while True:
        since = entries.stamps()
        slot, _ = searcher.search(key, partitions)
        if slot < 0:
            return None
        entry = entries.tasks.read(slot)
        if entry.behavior < 0:
            if entries.intact(entry, since):
                return None
            continue
        value = entries.behaviors.read(entry.behavior)
        if entries.intact(entry, since):
            return value


def is_whole(value: BehaviorValue) -> bool:
    """Return whether all parts of a value carry the same mark."""
    mark = value.coefficients[1, 0]
    same = bool((value.coefficients[1:] == mark).all())
    return same and value.target is not None and value.target.position[1] == mark


class TestAtomicSwap:
    """The same reader against both pools: it must fail without the protection, and hold with it."""

    def _race(self, build, pool: type[SlotPool], seconds: float) -> int:
        """Return how many torn values a reader saw while a writer replaced one over and over."""
        entries = table(pool)
        key = prepare_key(build.vector())
        values = [build.behavior(points=40, mark=float(mark)) for mark in range(1, 9)]
        entries.insert(PARTITION, key, values[0])
        torn = 0
        failures: list[Exception] = []
        stop = threading.Event()

        def write() -> None:
            round_number = 0
            try:
                while not stop.is_set():
                    round_number += 1
                    entries.insert(PARTITION, key, values[round_number % len(values)])
            except Exception as error:
                failures.append(error)
                stop.set()

        writer = threading.Thread(target=write)
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        searcher = entries.tasks.index.searcher()
        until = time.monotonic() + seconds
        try:
            writer.start()
            while time.monotonic() < until and not torn and not stop.is_set():
                value = read_whole(entries, key, [0], searcher)
                torn += value is not None and not is_whole(value)
        finally:
            stop.set()
            writer.join()
            sys.setswitchinterval(before)
        assert not failures
        return torn

    def test_a_racing_reader_sees_whole_values(self, build) -> None:
        assert self._race(build, SlotPool, 0.4) == 0

    @pytest.mark.parametrize(("pool", "torn"), [(SlotPool, False), (UnprotectedPool, True)])
    def test_writer_interrupted_in_the_middle(self, build, pool, torn: bool) -> None:
        """A reader that already holds a slot, while its value is thrown away and overwritten."""
        entries = table(pool)
        key = prepare_key(build.vector())
        entries.insert(PARTITION, key, build.behavior(mark=1.0))
        since = entries.stamps()
        slot, _ = entries.tasks.index.searcher().search(key, [0])
        entry = entries.tasks.read(slot)
        for mark in range(2, 40):  # more than there are slots: the one held is reused
            entries.insert(PARTITION, key, build.behavior(mark=float(mark)))
        stolen = entries.behaviors.read(entry.behavior)
        assert stolen.coefficients[1, 0] != 1.0
        assert entries.intact(entry, since) == torn

    def test_a_reader_does_not_wait_for_a_writer_that_stopped(self, build) -> None:
        """Half a new value is written and the writer never goes on: the old one is still read."""
        entries = table()
        key = prepare_key(build.vector())
        entries.insert(PARTITION, key, build.behavior(mark=1.0))
        half = entries.behaviors.pool.claim()
        entries.behaviors.write(half, build.behavior(mark=77.0))
        row = entries.tasks.pool.claim()
        entries.tasks.index.write(row, key)
        value = read_whole(entries, key, [0], entries.tasks.index.searcher())
        assert value is not None
        assert is_whole(value)
        assert value.coefficients[1, 0] == 1.0
