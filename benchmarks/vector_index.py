"""Which vector index finds entries beyond 100,000: usearch and faiss, on the same keys.

    .venv-bench/bin/python benchmarks/vector_index.py [--sizes 100000 1000000] [--check]

Every case is a process of its own, on one thread. One index a partition, as the cache has it, and
for comparison one for all with a filter. After the build a tenth of the entries is removed and
others are inserted in their place, where the library can do that, and the questions are asked
again. Recall is the share of questions whose most similar entry, found by exact search, is among
the answers. Times are those of one question from Python [us]: by the wall clock and by the thread's
CPU clock, which does not run while others have the core; the first 100 questions are left out.
Writes ``build/reports/vector_index.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table
from stored_keys import Stored, World
from threadpoolctl import threadpool_limits

from kv_action_router.contracts import SUMMED_SLICE
from kv_action_router.reporting.benchmark import conclude, write
from kv_action_router.reporting.bounds import Bound
from kv_action_router.reporting.statistics import quantiles

PARTITIONS = 48
QUESTIONS = 1000
WARM_UP = 100
ANSWERS = 16  # asked for of each question
CONNECTIVITY = 16
EXPANSION_ADD = 100
BREADTHS = (24, 32, 64)  # nodes looked at by a search; of an inverted file half as many lists
BREADTH = 32  # whose figures stand in the table
CHURN = 0.1
Array = np.ndarray[Any, Any]


class Candidate(Protocol):
    """An index of some keys of 56 numbers."""

    def add(self, slots: Array, keys: Array) -> None:
        """Insert keys (n, 56) under their slots (n,)."""

    def remove(self, slots: Array) -> bool:
        """Remove slots (n,); return whether that can be done."""

    def look(self, breadth: int) -> None:
        """Set how far searches look."""

    def search(self, key: Array, allowed: Array | None) -> Array:
        """Return slots near a key (56,), of those allowed (sorted) if that is asked; -1 = none."""


class Usearch:
    """HNSW graph of usearch."""

    def __init__(self, dtype: str) -> None:
        from usearch.index import Index

        self._index = Index(
            ndim=56,
            metric="ip",
            dtype=dtype,
            connectivity=CONNECTIVITY,
            expansion_add=EXPANSION_ADD,
        )

    def add(self, slots: Array, keys: Array) -> None:
        """Insert."""
        self._index.add(slots, keys, threads=1)

    def remove(self, slots: Array) -> bool:
        """Remove."""
        self._index.remove(slots, threads=1)
        return True

    def look(self, breadth: int) -> None:
        """Set how far searches look."""
        self._index.expansion_search = breadth

    def search(self, key: Array, allowed: Array | None) -> Array:
        """Return the nearest."""
        return np.asarray(self._index.search(key, ANSWERS, threads=1).keys)


class Faiss:
    """An index of faiss: ``hnsw`` or ``ivf`` (inverted file)."""

    def __init__(self, kind: str) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self._faiss = faiss
        self._kind = kind
        self._index: Any = None
        self._breadth = BREADTH

    def _make(self, keys: Array) -> Any:
        faiss = self._faiss
        if self._kind == "hnsw":
            index = faiss.IndexHNSWFlat(56, CONNECTIVITY, faiss.METRIC_INNER_PRODUCT)
            index.hnsw.efConstruction = EXPANSION_ADD
            return faiss.IndexIDMap2(index)
        lists = max(1, int(2 * np.sqrt(len(keys))))
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(56), 56, lists, faiss.METRIC_INNER_PRODUCT)
        index.cp.min_points_per_centroid = 1
        index.train(keys[: 64 * lists])
        index.set_direct_map_type(faiss.DirectMap.Hashtable)
        return index

    def add(self, slots: Array, keys: Array) -> None:
        """Insert; the first keys train an inverted file."""
        if self._index is None:
            self._index = self._make(keys)
        self._index.add_with_ids(keys, slots.astype(np.int64))

    def remove(self, slots: Array) -> bool:
        """Remove: a graph of faiss cannot."""
        if self._kind == "hnsw":
            return False
        self._index.remove_ids(self._faiss.IDSelectorArray(slots.astype(np.int64)))
        return True

    def look(self, breadth: int) -> None:
        """Set how far searches look."""
        self._breadth = breadth
        if self._kind == "hnsw":
            self._faiss.downcast_index(self._index.index).hnsw.efSearch = breadth
        else:
            self._index.nprobe = breadth // 2

    def search(self, key: Array, allowed: Array | None) -> Array:
        """Return the nearest."""
        if allowed is None:
            return np.asarray(self._index.search(key[None], ANSWERS)[1][0])
        parameters = self._faiss.SearchParametersHNSW(
            sel=self._faiss.IDSelectorBatch(allowed), efSearch=self._breadth
        )
        return np.asarray(self._index.search(key[None], ANSWERS, params=parameters)[1][0])


MAKERS: dict[str, Callable[[], Candidate]] = {
    "usearch_f32": lambda: Usearch("f32"),
    "usearch_f16": lambda: Usearch("f16"),
    "faiss_hnsw": lambda: Faiss("hnsw"),
    "faiss_ivf": lambda: Faiss("ivf"),
}
FILTERED = "faiss_hnsw_filtered"  # one graph for all partitions; at the smallest size only


def run(name: str, size: int) -> dict[str, Any]:
    """Build, ask, exchange a tenth, ask again; return the figures."""
    threadpool_limits(limits=1)
    world = World(PARTITIONS)
    stored, questions = world.draw(size, seed=2), world.draw(QUESTIONS + WARM_UP, seed=3)
    keys = np.ascontiguousarray(stored.keys[:, SUMMED_SLICE])
    process = psutil.Process()
    before = process.memory_info().rss
    start = time.thread_time()
    filtered = name == FILTERED
    make = MAKERS["faiss_hnsw" if filtered else name]
    slots = np.arange(size, dtype=np.uint64)
    indexes: dict[int, Candidate] = {}
    members = {p: slots[stored.partitions == p] for p in range(PARTITIONS)}
    if filtered:
        whole = make()
        whole.add(slots, keys)
        indexes = dict.fromkeys(members, whole)
    else:
        for partition, rows in members.items():
            indexes[partition] = make()
            indexes[partition].add(rows, keys[rows])
    seconds = time.thread_time() - start
    figures: dict[str, Any] = {
        "size": size,
        "largest_partition": max(len(rows) for rows in members.values()),
        "insert_us": seconds / size * 1e6,
        "bytes_per_entry": (process.memory_info().rss - before) / size,
    }
    allowed = members if filtered else dict.fromkeys(members)
    by_breadth = {}
    for breadth in BREADTHS:
        for index in indexes.values():
            index.look(breadth)
        by_breadth[breadth] = ask(indexes, keys, members, questions, allowed)
    figures.update(by_breadth[BREADTH], breadths=by_breadth)
    if filtered:
        return figures
    others = world.draw(size, seed=4)
    fresh = np.ascontiguousarray(others.keys[:, SUMMED_SLICE])
    start = time.thread_time()
    for partition, rows in members.items():
        gone = rows[: int(CHURN * len(rows))]
        if not indexes[partition].remove(gone):
            figures["recall_after_exchange"] = None
            return figures
        keys[gone] = fresh[others.partitions == partition][: len(gone)]
        indexes[partition].add(gone, keys[gone])
    figures["exchange_us"] = (time.thread_time() - start) / (CHURN * size) * 1e6
    for index in indexes.values():
        index.look(BREADTH)
    again = ask(indexes, keys, members, questions, allowed)
    figures.update({f"{field}_after_exchange": again[field] for field in ("recall", "p99_us")})
    return figures


def ask(
    indexes: dict[int, Candidate],
    keys: Array,
    members: dict[int, Array],
    questions: Stored,
    allowed: dict[int, Any],
) -> dict[str, Any]:
    """Return recall and times of all questions."""
    wall: list[float] = []
    cpu: list[float] = []
    found = 0
    for number, partition in enumerate(questions.partitions.tolist()):
        key = np.ascontiguousarray(questions.keys[number, SUMMED_SLICE])
        index, among = indexes[partition], allowed[partition]
        started, ran = time.perf_counter_ns(), time.thread_time_ns()
        answers = index.search(key, among)
        ran, ended = time.thread_time_ns() - ran, time.perf_counter_ns()
        if number < WARM_UP:
            continue
        wall.append((ended - started) / 1e3)
        cpu.append(ran / 1e3)
        answers = answers[answers.astype(np.int64) >= 0].astype(np.intp)
        best = float((keys[members[partition]] @ key).max())
        found += bool(answers.size) and float((keys[answers] @ key).max()) >= best - 1e-6
    figures: dict[str, Any] = {"recall": found / len(wall), "n": len(wall)}
    figures.update(quantiles(wall, p50_us=0.5, p99_us=0.99, max_us=1.0))
    figures.update(quantiles(cpu, p50_cpu_us=0.5, p99_cpu_us=0.99))
    return figures


def measure(name: str, size: int) -> dict[str, Any]:
    """Run one case in a process of its own."""
    command = [sys.executable, __file__, "--case", f"{name},{size}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} at {size} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each case."""
    table = Table("index", "entries", "insert us", "B/entry", "recall", title="vector indexes")
    for column in ("p50 us", "p99 us", "p99 us (CPU)", "exchange us", "recall after"):
        table.add_column(column)
    for case, found in report["cases"].items():

        def text(field: str, form: str, found: dict[str, Any] = found) -> str:
            value = found.get(field)
            return "-" if value is None else format(value, form)

        table.add_row(
            case.split("@")[0],
            str(found["size"]),
            *(text(f, ".0f") for f in ("insert_us", "bytes_per_entry")),
            text("recall", ".3f"),
            *(text(f, ".0f") for f in ("p50_us", "p99_us", "p99_cpu_us", "exchange_us")),
            text("recall_after_exchange", ".3f"),
        )
    return table


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--only", nargs="+", default=[*MAKERS, FILTERED])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/vector_index.json"))
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    console = Console()
    if options.case:
        name, size = options.case.split(",")
        console.out(json.dumps(run(name, int(size))), highlight=False)
        return 0
    report: dict[str, Any] = {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "partitions": PARTITIONS,
        "cases": {},
    }
    for size in sorted(options.sizes):
        for name in options.only:
            if name == FILTERED and size != min(options.sizes):
                continue
            with console.status(f"{name}, {size} entries"):
                report["cases"][f"{name}@{size}"] = measure(name, size)
            write(report, options.output)  # the next one may take minutes
    console.print(show(report))
    bounds = [
        Bound(f"{case}: {field}", lambda r, c=case, f=field: r["cases"][c][f], compare, limit)
        for case in report["cases"]
        if case.startswith("usearch_f32")
        for field, compare, limit in (("recall", ">=", 0.99), ("p99_us", "<=", 1000.0))
    ]
    return conclude(report, bounds, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
