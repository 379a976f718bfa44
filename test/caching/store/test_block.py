"""What is taken in bulk is what an insertion takes, no more and no less."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.caching.key_index import prepare_key
from kv_action_router.caching.layers.behavior import BehaviorSize, check_behavior
from kv_action_router.caching.store.block import check_layout, plainly_good, read_block, sift
from kv_action_router.caching.store.record import EntryRecord, Layout
from kv_action_router.contracts import Pose
from kv_action_router.errors import EntryInvalidError, RouterError

SIZE = BehaviorSize()


def record(build: Any, **changes: Any) -> EntryRecord:
    value = build.behavior()
    where = {"domain": "r1", "encoder_id": "e1", "intent_id": "touch", "subtask": value.subtask}
    entry = EntryRecord(1, 1, **where, key=prepare_key(build.vector()), behavior=value)
    return dataclasses.replace(entry, **changes)


def spoiled(build: Any, field: str, change: Any) -> EntryRecord:
    value = build.behavior()
    if field == "key":
        key = prepare_key(build.vector())
        change(key)
        return record(build, key=key)
    if field == "target":
        target = Pose(value.target.position.copy(), value.target.orientation.copy())
        change(target)
        return record(build, behavior=dataclasses.replace(value, target=target))
    array = getattr(value, field).copy()
    change(array)
    return record(build, behavior=dataclasses.replace(value, **{field: array}))


def sifted(build: Any, entry: EntryRecord) -> tuple[int, dict[int, str]]:
    good = record(build, entry_id=77)
    rows = [good.row(), entry.row()]
    block, refused = sift(read_block(good.layout, rows), rows, SIZE)
    return len(block), refused


@pytest.mark.parametrize(
    ("field", "change", "message"),
    [
        ("key", lambda key: key.__setitem__(3, np.nan), "key must be finite"),
        ("key", lambda key: key.__imul__(2.0), "unit norm"),
        ("key", lambda key: key.__imul__(0.0), "key must not be zero"),
        ("key", lambda key: key.__setitem__(60, np.inf), "key must be finite"),
        ("coefficients", lambda a: a.__setitem__((2, 1), np.inf), "coefficients must be finite"),
        ("knots", lambda a: a.__setitem__(3, np.nan), "knots must be finite"),
        ("knots", lambda a: a.__setitem__(8, 1.99), "in rising order"),
        ("knots", lambda a: a.__setitem__(0, -0.1), "clamped"),
        ("knots", lambda a: a.__imul__(0.0), "positive duration"),
        ("knots", lambda a: a.__setitem__(slice(6, 12), 1.0), "repeated at most"),
        ("decay", lambda a: a.__setitem__(1, 1.01), "decay must be 0 to 1"),
        ("decay", lambda a: a.__setitem__(1, np.nan), "decay must be 0 to 1"),
        ("target", lambda t: t.position.__setitem__(0, np.nan), "3 finite values"),
        ("target", lambda t: t.orientation.__imul__(1.01), "unit quaternion"),
    ],
)
def test_what_an_insertion_refuses_is_refused(build, field, change, message) -> None:
    count, refused = sifted(build, spoiled(build, field, change))
    assert count == 1
    assert list(refused) == [1]
    assert message in refused[1]


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 0},
        {"successes": -1},
        {"failures": 2**31},
        {"last_used": -3},
        {"version": 2**40},
    ],
)
def test_counters_out_of_range_are_refused(build, changes) -> None:
    count, refused = sifted(build, record(build, **changes))
    assert count == 1
    assert "range" in refused[1]


def test_an_unusual_value_that_an_insertion_takes_is_taken(build) -> None:
    def turn(target: Pose) -> None:
        target.orientation[:] *= 1.0008  # inside the tolerance, but not plainly

    entry = spoiled(build, "target", turn)
    assert not plainly_good(read_block(entry.layout, [entry.row()])).any()
    assert sifted(build, entry) == (2, {})


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
@settings(max_examples=60)
def test_what_is_plainly_good_passes_the_checks(build, seed: int, count: int) -> None:
    """Bytes anywhere in the numbers are changed: what is still taken is what an insertion takes."""
    rng = np.random.default_rng(seed)
    entry = record(build)
    row = list(entry.row())
    numbers = np.frombuffer(row[8], dtype=np.uint8).copy()
    places = rng.integers(0, len(numbers), count)
    numbers[places] = rng.integers(0, 256, count)
    row[8] = numbers.tobytes()
    if plainly_good(read_block(entry.layout, [tuple(row)]))[0]:
        back = EntryRecord.of(tuple(row))
        assert np.allclose(prepare_key(back.key), back.key, atol=1e-5)
        check_behavior(back.behavior, SIZE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain": "a b"}, "domain must"),
        ({"domain": ""}, "domain must"),
        ({"intent_id": ""}, "intent_id must"),
        ({"subtask": "x" * 257}, "subtask must"),
        ({"subtask": "touch_approach"}, "subtask must be a name with its version"),
        ({"dimensions": ("a/position", "b/position", "a/position")}, "without repetition"),
        ({"dimensions": ("a",)}, "joint/interface"),
        ({"points": 0}, "at least one point"),
        ({"points": 5}, "at least degree"),
        ({"degree": 0}, "degree must be"),
        ({"points": 500}, "at most 768"),
        ({"dimensions": ()}, "dimensions must be"),
    ],
)
def test_layouts_that_no_entry_may_have(build, changes, message) -> None:
    layout = dataclasses.replace(record(build).layout, **changes)
    with pytest.raises(RouterError, match=message):
        check_layout(layout, SIZE)


def test_good_layouts(build) -> None:
    check_layout(record(build).layout, SIZE)
    check_layout(record(build, behavior=None).layout, SIZE)
    with pytest.raises(EntryInvalidError):
        check_layout(Layout("r1", "e1", "touch", "s", (), 5, 12, False), SIZE)
