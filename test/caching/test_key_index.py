"""The key index: what a key must be, and that a search finds the best row of its partitions."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.caching.key_index import KeyIndex, prepare_key, slice_similarities
from kv_action_router.contracts import SUMMED_SLICE
from kv_action_router.errors import KeyInvalidError


def filled(keys: np.ndarray, partitions: list[int]) -> KeyIndex:
    index = KeyIndex(len(keys) + 4)
    for slot, (key, partition) in enumerate(zip(keys, partitions, strict=True)):
        index.write(slot, prepare_key(key))
        index.publish(slot, partition)
    return index


class TestPrepareKey:
    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            (np.zeros(64), "zero"),
            (np.concatenate([np.zeros(56), np.ones(8)]), "zero"),
            (np.full(64, 1e-12), "norm at least"),
            (np.full(64, np.nan), "finite"),
            (np.append(np.ones(63), np.inf), "index 63"),
            (np.full(64, 1e300), "finite"),
            (np.ones(63), "64 values, got 63"),
            (np.ones(65), "got 65"),
            (np.ones(1_000_000), "got 1000000"),
            ([], "got 0"),
            (np.ones((8, 8)), "shape"),
            (np.ones(64, dtype=complex), "real"),
            (np.ones(64, dtype=bool), "real"),
            (["a"] * 64, "real"),
            ([None] * 64, "real"),
            ([[1.0], [1.0, 2.0]], "64"),
            (None, "64"),
        ],
    )
    def test_refuses_with_field_limit_and_value(self, bad: object, message: str) -> None:
        with pytest.raises(KeyInvalidError, match=message) as caught:
            prepare_key(bad)
        assert str(caught.value).startswith("key must be") or "key must not" in str(caught.value)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
    def test_takes_any_real_dtype(self, build, dtype: type) -> None:
        key = build.vector()
        assert np.allclose(prepare_key(key.astype(dtype)), prepare_key(key), atol=1e-3)

    def test_takes_lists_integers_and_strided_arrays(self, build) -> None:
        key = build.vector()
        wide = np.zeros(128, dtype=np.float32)
        wide[::2] = key
        assert np.array_equal(prepare_key(wide[::2]), prepare_key(key))
        assert np.allclose(prepare_key(key.tolist()), prepare_key(key))
        assert prepare_key(np.ones(64, dtype=np.int64)).dtype == np.float32

    def test_negative_zero_is_zero(self) -> None:
        key = np.ones(64, dtype=np.float32)
        key[60] = -0.0
        assert not np.signbit(prepare_key(key)[60])

    def test_does_not_write_into_what_it_is_given(self, build) -> None:
        key = build.vector() * 3.0
        before = key.copy()
        prepare_key(key)
        assert np.array_equal(key, before)

    @given(st.floats(1e-3, 1e6))
    def test_scale_does_not_matter(self, scale: float) -> None:
        key = np.random.default_rng(5).normal(size=64)
        assert np.allclose(
            prepare_key(key * scale)[SUMMED_SLICE], prepare_key(key)[SUMMED_SLICE], atol=1e-6
        )


class TestSearch:
    @settings(deadline=None)
    @given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sets(st.integers(0, 3), min_size=1))
    def test_finds_what_a_plain_search_finds(self, seed: int, rows: int, wanted: set[int]) -> None:
        random = np.random.default_rng(seed)
        keys = random.normal(size=(rows, 64))
        partitions = random.integers(0, 4, rows).tolist()
        index = filled(keys, partitions)
        question = prepare_key(random.normal(size=64))
        slot, similarity = index.search(question, sorted(wanted), index.buffers())
        cosines = {
            row: float(prepare_key(keys[row])[SUMMED_SLICE] @ question[SUMMED_SLICE])
            for row in range(rows)
            if partitions[row] in wanted
        }
        if not cosines:
            assert slot == -1
            assert math.isnan(similarity)
        else:
            assert similarity == pytest.approx(max(cosines.values()), abs=1e-5)
            assert cosines[slot] == pytest.approx(similarity, abs=1e-5)

    def test_next_best_leaves_out_what_shares_the_group(self) -> None:
        keys = np.eye(64)[:4] + 0.5
        index = filled(keys, [0, 0, 0, 0])
        groups = np.array([7, 7, 8, -1, -1, -1, -1, -1], dtype=np.int32)
        buffers = index.buffers()
        found = [index.search(prepare_key(keys[0]), [0], buffers)[0]]
        for _ in range(2):
            found.append(index.next_best(found[-1], groups, buffers)[0])
        assert found[0] == 0
        assert set(found[1:]) == {2, 3}
        assert index.next_best(found[-1], groups, buffers)[0] == -1

    def test_withdrawn_and_unpublished_rows_are_not_found(self) -> None:
        index = filled(np.eye(64)[:2] + 0.1, [0, 0])
        index.withdraw(0)
        index.write(2, prepare_key(np.eye(64)[0] + 0.1))
        assert index.search(prepare_key(np.eye(64)[0] + 0.1), [0], index.buffers())[0] == 1

    def test_allocates_nothing_that_grows_with_the_number_of_entries(self) -> None:
        index = filled(np.random.default_rng(0).normal(size=(5000, 64)), [0] * 5000)
        buffers, groups = index.buffers(), np.arange(5004, dtype=np.int32)
        question = prepare_key(np.ones(64))
        index.search(question, [0, 1], buffers)
        tracemalloc.start()
        slot, _ = index.search(question, [0, 1], buffers)
        index.next_best(slot, groups, buffers)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 5000  # a single temporary of one byte a row would be more


def test_slice_similarities_are_per_slice_and_nan_where_empty(build) -> None:
    key = build.vector()
    other = build.turned(key, "scene", 0.25)
    assert slice_similarities(key, other) == pytest.approx(
        {"target": 1.0, "scene": 0.25, "body": 1.0}, abs=1e-5
    )
    other[:16] = 0.0
    assert math.isnan(slice_similarities(key, other)["target"])
