"""What every index must do: a search finds the best row of its partitions, and no other."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.caching.index.base import KeyIndex
from kv_action_router.caching.index.exact import ExactIndex
from kv_action_router.caching.index.vector import VectorIndex
from kv_action_router.caching.key_index import prepare_key
from kv_action_router.contracts import SUMMED_SLICE

KINDS = [ExactIndex, VectorIndex]


def filled(kind: type[KeyIndex], keys: np.ndarray, partitions: list[int]) -> KeyIndex:
    index = kind(len(keys) + 4)
    for row, (key, partition) in enumerate(zip(keys, partitions, strict=True)):
        index.write(row, prepare_key(key))
        index.publish(row, partition)
    return index


@pytest.mark.parametrize("kind", KINDS)
class TestSearch:
    @settings(deadline=None, max_examples=20)
    @given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sets(st.integers(0, 3), min_size=1))
    def test_finds_what_a_plain_search_finds(
        self, kind: type[KeyIndex], seed: int, rows: int, wanted: set[int]
    ) -> None:
        random = np.random.default_rng(seed)
        keys = random.normal(size=(rows, 64))
        partitions = random.integers(0, 4, rows).tolist()
        index = filled(kind, keys, partitions)
        question = prepare_key(random.normal(size=64))
        row, similarity = index.searcher().search(question, sorted(wanted))
        cosines = {
            row: float(prepare_key(keys[row])[SUMMED_SLICE] @ question[SUMMED_SLICE])
            for row in range(rows)
            if partitions[row] in wanted
        }
        if not cosines:
            assert row == -1
            assert math.isnan(similarity)
        else:
            assert similarity == pytest.approx(max(cosines.values()), abs=1e-5)
            assert cosines[row] == pytest.approx(similarity, abs=1e-5)

    def test_next_best_leaves_out_what_shares_the_group(self, kind: type[KeyIndex]) -> None:
        keys = np.eye(64)[:4] + 0.5
        index = filled(kind, keys, [0, 0, 0, 0])
        groups = np.array([7, 7, 8, -1, -1, -1, -1, -1], dtype=np.int32)
        searcher = index.searcher()
        found = [searcher.search(prepare_key(keys[0]), [0])[0]]
        for _ in range(2):
            found.append(searcher.next_best(found[-1], groups)[0])
        assert found[0] == 0
        assert set(found[1:]) == {2, 3}
        assert searcher.next_best(found[-1], groups)[0] == -1

    def test_withdrawn_and_unpublished_rows_are_not_found(self, kind: type[KeyIndex]) -> None:
        index = filled(kind, np.eye(64)[:2] + 0.1, [0, 0])
        index.withdraw(0)
        index.write(2, prepare_key(np.eye(64)[0] + 0.1))
        assert index.searcher().search(prepare_key(np.eye(64)[0] + 0.1), [0])[0] == 1

    def test_rows_published_at_once_are_found_as_those_published_one_by_one(
        self, kind: type[KeyIndex]
    ) -> None:
        keys = np.random.default_rng(8).normal(size=(40, 64))
        partitions = np.arange(40, dtype=np.int32) % 3
        single, many = filled(kind, keys, partitions.tolist()), kind(44)
        for row, key in enumerate(keys):
            many.write(row, prepare_key(key))
        assert many.searcher().search(prepare_key(keys[0]), [0])[0] == -1
        many.publish_all(np.arange(40), partitions)
        for key in np.random.default_rng(9).normal(size=(20, 64)):
            for wanted in ([0], [1, 2]):
                question = prepare_key(key)
                found = many.searcher().search(question, wanted)
                assert found == single.searcher().search(question, wanted)

    def test_a_searcher_sees_what_changed_since_its_last_search(self, kind: type[KeyIndex]) -> None:
        index = filled(kind, np.eye(64)[:3] + 0.1, [0, 0, 1])
        searcher, question = index.searcher(), prepare_key(np.eye(64)[0] + 0.1)
        asked = [0]
        assert searcher.search(question, asked)[0] == 0
        index.withdraw(0)
        assert searcher.search(question, asked)[0] == 1
        asked[0] = 1
        assert searcher.search(question, asked)[0] == 2
        index.write(0, question)
        index.publish(0, 1)
        assert searcher.search(question, asked)[0] == 0
        assert searcher.search(question, [])[0] == -1

    def test_allocates_nothing_that_grows_with_the_number_of_entries(
        self, kind: type[KeyIndex]
    ) -> None:
        def peak(count: int) -> int:
            keys = np.random.default_rng(0).normal(size=(count, 64))
            index = filled(kind, keys, [0] * count)
            searcher, groups = index.searcher(), np.arange(count + 4, dtype=np.int32)
            question = prepare_key(np.ones(64))
            searcher.search(question, [0, 1])
            tracemalloc.start()
            row, _ = searcher.search(question, [0, 1])
            searcher.next_best(row, groups)
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            return most

        assert peak(1500) < peak(300) + 1000  # a temporary of one byte a row would be more

    @pytest.mark.parametrize("free", [2, 60])
    def test_rows_that_were_never_used_are_not_found(self, kind: type[KeyIndex], free: int) -> None:
        """Nearly full and nearly empty indexes are multiplied in different ways."""
        random = np.random.default_rng(11)
        keys = -np.abs(random.normal(size=(10, 64)))
        index = kind(len(keys) + free)
        for row, key in enumerate(keys):
            index.write(row, prepare_key(key))
            index.publish(row, 0)
        question = prepare_key(np.ones(64))
        cosines = [float(prepare_key(key)[SUMMED_SLICE] @ question[SUMMED_SLICE]) for key in keys]
        row, similarity = index.searcher().search(question, [0])
        assert similarity == pytest.approx(max(cosines), abs=1e-5)  # below the 0 of an empty row
        assert cosines[row] == pytest.approx(similarity, abs=1e-5)

    def test_many_keys_are_written_as_those_written_one_by_one(self, kind: type[KeyIndex]) -> None:
        keys = np.array([prepare_key(key) for key in np.random.default_rng(4).normal(size=(5, 64))])
        single, many = kind(9), kind(9)
        rows = np.array([6, 0, 3, 1, 2])
        for row, key in zip(rows, keys, strict=True):
            single.write(int(row), key)
        many.write_all(rows, keys)
        assert np.array_equal(single.keys, many.keys)
        assert single.end == many.end == 7
