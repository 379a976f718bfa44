"""The vector index: what a graph adds to an index, and how it is left out of the matcher's way."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from kv_action_router.caching.index.exact import ExactIndex
from kv_action_router.caching.index.vector import VectorIndex
from kv_action_router.caching.key_index import prepare_key
from kv_action_router.contracts import SUMMED_SLICE


def clustered(count: int, seed: int) -> np.ndarray:
    """Keys in eight clusters (n, 64)."""
    random = np.random.default_rng(seed)
    centers = np.random.default_rng(1).normal(size=(8, 64))
    keys = centers[random.integers(0, 8, count)] + 0.3 * random.normal(size=(count, 64))
    return np.array([prepare_key(key) for key in keys])


def best_of(
    index: VectorIndex | ExactIndex, keys: np.ndarray, partitions: list[int]
) -> list[float]:
    searcher = index.searcher()
    return [searcher.search(key, partitions)[1] for key in keys]


@pytest.fixture
def pair() -> tuple[VectorIndex, ExactIndex]:
    """Both kinds with the same 600 rows: one large partition, one of 20 rows among them."""
    keys = clustered(600, 2)
    vector, exact = VectorIndex(700), ExactIndex(700)
    for row, key in enumerate(keys):
        for index in (vector, exact):
            index.write(row, key)
            index.publish(row, int(row % 30 == 0))
    return vector, exact


@pytest.mark.parametrize("partitions", [[0], [1], [0, 1], [1, 7]])
def test_recall_holds_in_large_and_small_partitions(pair, partitions: list[int]) -> None:
    vector, exact = pair
    questions = clustered(100, 3)
    same = np.isclose(best_of(vector, questions, partitions), best_of(exact, questions, partitions))
    assert same.mean() >= 0.99


def test_recall_holds_after_all_rows_were_exchanged(pair) -> None:
    vector, exact = pair
    for row, key in enumerate(clustered(600, 4)):
        for index in (vector, exact):
            index.withdraw(row)
            index.write(row, key)
            index.publish(row, 0)
    questions = clustered(100, 5)
    assert (
        np.isclose(best_of(vector, questions, [0]), best_of(exact, questions, [0])).mean() >= 0.99
    )
    assert vector.searcher().search(questions[0], [1])[0] == -1


def test_a_row_that_the_graph_still_proposes_is_left_out(pair) -> None:
    """Between the withdrawal and the removal from the graph a search may come."""
    vector, _ = pair
    key = vector.keys[5]
    searcher = vector.searcher()
    question = np.zeros(64, dtype=np.float32)
    question[SUMMED_SLICE] = key
    assert searcher.search(question, [0])[0] == 5
    vector.partitions[5] = -1
    assert searcher.search(question, [0])[0] != 5


def test_searches_beside_insertions_and_removals(pair) -> None:
    """A thread searches while another exchanges rows: what is found is there, always."""
    vector, _ = pair
    questions = clustered(50, 6)
    stop, failures = threading.Event(), []

    def search() -> None:
        searcher = vector.searcher()
        while not stop.is_set():
            for key in questions:
                row, similarity = searcher.search(key, [0])
                if not (row >= 0 and -1.0 <= similarity <= 1.0):
                    failures.append((row, similarity))

    thread = threading.Thread(target=search)
    thread.start()
    try:
        for row, key in enumerate(clustered(200, 7)):
            vector.withdraw(row)
            vector.write(row, key)
            vector.publish(row, 0)
    finally:
        stop.set()
        thread.join(30)
    assert not thread.is_alive()
    assert not failures


def test_a_match_by_vector_is_a_match_by_product(build) -> None:
    """The whole cache answers the same with either index."""
    answers = []
    for kind in ("exact", "vector"):
        manager = build.manager(capacity=40, index=kind)
        for seed in range(30):
            manager.apply(build.update(vector=build.vector(seed, 100 + seed, 200 + seed)))
        manager.apply(build.update(vector=build.turned(build.vector(3, 103, 203), "scene", 0.6)))
        answers.append(manager.query(build.vector(3, 103, 203), intent_id="touch"))
    first, second = answers
    assert first.hit
    assert (first.entry_id, first.reason) == (second.entry_id, second.reason)
    assert first.similarity == pytest.approx(second.similarity, abs=1e-6)
    assert first.margin == pytest.approx(second.margin, abs=1e-6)
    assert first.margin == pytest.approx(0.1, abs=1e-5)
