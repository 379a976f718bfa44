"""Rows: an even sample in memory that was taken once."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.monitoring.calibration.rows import Column, RowStore


def numbered(store: RowStore, count: int) -> None:
    for number in range(count):
        store.add(np.full((len(Column), 1), float(number)))


@settings(max_examples=30)
@given(st.integers(1, 20), st.integers(0, 60))
def test_as_many_rows_as_came_or_as_there_is_room_for(capacity, count):
    store = RowStore(1, capacity)
    numbered(store, count)
    rows = store.rows()
    assert rows.shape == (min(capacity, count), len(Column), 1)
    kept = rows[:, 0, 0].tolist()
    assert len(set(kept)) == len(kept)
    assert all(0 <= number < count for number in kept)
    assert (rows == rows[:, :1]).all()  # whole rows


def test_early_and_late_rows_are_kept_alike():
    kept = []
    for seed in range(40):
        store = RowStore(1, 50, seed)
        numbered(store, 1000)
        kept += store.rows()[:, 0, 0].tolist()
    shares = np.histogram(kept, bins=4, range=(0, 1000))[0] / len(kept)
    np.testing.assert_allclose(shares, 0.25, atol=0.05)


def test_rows_are_copies_and_can_be_forgotten():
    store = RowStore(2, 4)
    row = np.ones((len(Column), 2))
    store.add(row)
    row[:] = 9.0
    rows = store.rows()
    rows[:] = 7.0
    assert (store.rows() == 1.0).all()
    store.clear()
    assert len(store.rows()) == store.kept == 0
