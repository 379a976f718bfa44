"""A row holds an entry whole, and says when it does not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.caching.store.record import EntryRecord, Layout, is_whole
from kv_action_router.contracts import BehaviorValue, Pose
from kv_action_router.errors import EntryInvalidError


@st.composite
def records(draw: st.DrawFn) -> EntryRecord:
    degree = draw(st.integers(1, 5))
    points = draw(st.integers(degree + 1, degree + 6))
    width = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    target = Pose(rng.normal(size=3), np.array([0.0, 0.0, 0.0, 1.0]))
    behavior = BehaviorValue(
        subtask=draw(st.sampled_from(["touch", "拧紧", 'a"b\\c'])),
        dimensions=tuple(f"gelenk_{n}_ä/position" for n in range(width)),
        degree=degree,
        knots=np.sort(rng.uniform(size=points + degree + 1)),
        coefficients=rng.normal(size=(points, width)),
        phase=draw(st.floats(0.0, 1.0)),
        decay=rng.uniform(size=width),
        target=target if draw(st.booleans()) else None,
    )
    return EntryRecord(
        entry_id=draw(st.integers(1, 2**40)),
        version=draw(st.integers(1, 2**31 - 1)),
        domain="r1",
        encoder_id=draw(st.sampled_from(["", "e1", "编码 ä"])),
        intent_id=draw(st.sampled_from(["touch", "拧紧", 'a"b\\c'])),
        subtask=behavior.subtask,
        key=rng.normal(size=64).astype(np.float32),
        behavior=behavior if draw(st.booleans()) else None,
        successes=draw(st.integers(0, 2**31 - 1)),
        failures=draw(st.integers(0, 2**31 - 1)),
        failures_in_row=draw(st.integers(0, 100)),
        confident=draw(st.booleans()),
        last_used=draw(st.integers(0, 2**60)),
    )


def same(first: EntryRecord, second: EntryRecord) -> bool:
    return first.row() == second.row()


@given(records())
@settings(max_examples=25)
def test_an_entry_comes_back_bit_by_bit(record: EntryRecord) -> None:
    row = record.row()
    assert is_whole(row)
    back = EntryRecord.of(row)
    assert same(back, record)
    assert Layout.read(row[7]) == record.layout
    if record.behavior is not None:
        assert np.array_equal(back.behavior.coefficients, record.behavior.coefficients)
        assert np.array_equal(back.behavior.knots, record.behavior.knots)


@given(records(), st.data())
@settings(max_examples=25)
def test_any_flipped_bit_is_seen(record: EntryRecord, data: st.DataObject) -> None:
    row = list(record.row())
    column = data.draw(st.sampled_from([*range(7), 8]))
    if column == 8:
        numbers = bytearray(row[8])
        bit = data.draw(st.integers(0, 8 * len(numbers) - 1))
        numbers[bit // 8] ^= 1 << bit % 8
        row[8] = bytes(numbers)
    else:
        row[column] ^= 1 << data.draw(st.integers(0, 62))
    assert not is_whole(tuple(row))


@pytest.mark.parametrize(
    ("column", "value"),
    [(0, None), (1, "1"), (7, "{}"), (8, "text"), (8, None), (9, "x"), (3, 2**64)],
)
def test_other_types_are_not_whole(build, column: int, value: object) -> None:
    row = list(entry(build).row())
    row[column] = value
    assert not is_whole(tuple(row))


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{}", b"null", b"[" * 10_000, 7, b"x" * 70_000, b"\xff", "{}",
     b'{"domain":1,"encoder_id":"","intent_id":"","subtask":"","dimensions":[],"degree":0,"points":0,"target":false}',
     b'{"domain":"","encoder_id":"","intent_id":"","subtask":"","dimensions":[],"degree":-1,"points":0,"target":false}',
     b'{"domain":"","encoder_id":"","intent_id":"","subtask":"","dimensions":[],"degree":0,"points":1e9,"target":false}'],
)  # fmt: skip
def test_what_is_no_layout_is_refused(text: object) -> None:
    with pytest.raises(EntryInvalidError, match="layout must"):
        Layout.read(text)


def test_numbers_of_another_length_are_refused(build) -> None:
    row = list(entry(build).row())
    row[8] += bytes(8)
    with pytest.raises(EntryInvalidError, match="numbers must be"):
        EntryRecord.of(tuple(row))


def entry(build) -> EntryRecord:
    value = build.behavior()
    return EntryRecord(1, 1, "r1", "e1", "touch", value.subtask, build.vector(), value)


def test_a_layouts_example_has_its_shape(build) -> None:
    layout = entry(build).layout
    example = layout.example()
    assert example.coefficients.shape == build.behavior().coefficients.shape
    assert example.knots.shape == build.behavior().knots.shape
    assert dataclasses.replace(layout, has_target=False).size == layout.size - 7 * 8
