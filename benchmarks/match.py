"""How long the cache takes to find the entry that answers a key, and what an entry costs.

    .venv/bin/python benchmarks/match.py [--check]

At 1,000, 10,000 and 100,000 entries the exact index, at 1,000,000 the vector index, each in a
process of its own with one BLAS thread, on keys that lie in clusters (``stored_keys.py``), all in
one partition at the exact sizes: the worst case. A *match* is the search (partition mask, product,
best and runner-up) and the judgement (similarity of each slice against threshold and target
minimum); a *decision* is the whole answer, with the value read and the guards asked. Calls of the
bare matrix-vector product, of the match and of the decision take turns in short hot loops, so that
all see the same machine; the first 50 of each are left out. The *product* that a match is held
against is that of an array of keys, one after the other; the *stored product* is that of the same
keys component by component, as the cache has them, which takes less.
Memory is what a full cache of 100,000 values, such as the planner makes for six joints, adds to the
process. Writes ``build/reports/match.json``; with ``--check`` it exits with 1 and names each figure
that falls short.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil
from rich.table import Table
from stored_keys import World
from threadpoolctl import threadpool_limits

from harness.console import wide_console
from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.domains import Domains
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.eviction import make_policy
from kv_action_router.caching.guards import (
    EmptyGuard,
    FiniteGuard,
    JointLimitGuard,
    StartStateGuard,
)
from kv_action_router.caching.index.choice import index_of
from kv_action_router.caching.layers.behavior import BehaviorSize
from kv_action_router.caching.match import Matcher, Question
from kv_action_router.caching.partitions import Partition
from kv_action_router.contracts import (
    SUMMED_SLICE,
    BehaviorValue,
    Float32Array,
    JointSample,
    Pose,
)
from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at
from kv_action_router.reporting.statistics import quantiles
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.basis import uniform_knots
from kv_action_router.synthesis.config import SynthesisConfig

ROUNDS = {1_000: 20_000, 10_000: 5_000, 100_000: 500, 1_000_000: 2_000}
BLOCKS = {1_000: 100, 10_000: 50, 100_000: 10, 1_000_000: 50}  # calls of a kind in a row
WARM_UP = 50
REPEATED = {"1000": 5}  # processes of a case, of which the fastest counts
QUESTIONS = 500
EXACT = [size for size in ROUNDS if size <= 100_000]
BLOCK = 512  # entries put in at once, as from the disk
PARTITIONS = 48  # where the vector index is used
MEMORY_ENTRIES = 100_000
PRECISIONS = ("single", "double")
SUBTASK = "approach_v1"
BOUNDS = (
    Bound("match, 1,000 entries: p50 in us", at("1000", "match", "p50"), "<=", 15.0),
    Bound("match / product, 10,000 entries: p50", at("10000", "match_per_product"), "<=", 1.3),
    Bound("match / product, 100,000 entries: p50", at("100000", "match_per_product"), "<=", 1.3),
    Bound("match, 1,000,000 entries: p99 in us", at("1000000", "match", "p99"), "<=", 1000.0),
    Bound("match, 1,000,000 entries: recall", at("1000000", "recall"), ">=", 0.99),
    Bound("memory of 100,000 entries in MB", at("memory_double", "megabytes"), "<=", 200.0),
)


def value_of(model: RobotModel) -> BehaviorValue:
    """Return a value of the size that the planner makes for the robot."""
    points = SynthesisConfig().coefficients
    return BehaviorValue(
        subtask=SUBTASK,
        dimensions=tuple(f"{name}/position" for name in model.joint_names),
        degree=5,
        knots=uniform_knots(points) * 2.0,
        coefficients=np.tile(model.home, (points, 1)),
        phase=0.0,
        decay=np.ones(model.n),
        target=Pose(),
    )


class Cache:
    """A full cache, and a matcher on it."""

    def __init__(self, size: int, partitions: int, precision: str = "single") -> None:
        self.config = CachingConfig(robot_id="r", capacity=size)
        self.model = RobotModel.load("ur5e")
        self.world = World(partitions)
        value = value_of(self.model)
        room = BehaviorSize(value.coefficients.size, len(value.knots), self.model.n, precision)
        policy = make_policy(self.config.eviction)
        self.table = EntryTable(
            size, room, policy, self.config.merge_threshold, index_of(self.config)
        )
        stored = self.world.draw(size, seed=2)
        start = time.perf_counter()
        for partition in range(partitions):
            rows = np.flatnonzero(stored.partitions == partition)
            for first in range(0, len(rows), BLOCK):
                self._fill(partition, rows[first : first + BLOCK], stored.keys, value)
        self.seconds = time.perf_counter() - start
        guards = [
            EmptyGuard(),
            FiniteGuard(),
            JointLimitGuard(self.model),
            StartStateGuard(self.model, self.config.start_distance),
        ]
        self.matcher = Matcher(self.config, self.table, Domains("r"), guards)

    def _fill(
        self, partition: int, rows: npt.NDArray[np.intp], keys: Float32Array, value: BehaviorValue
    ) -> None:
        """Take entries as from the disk: an insertion would look for a near-duplicate of each."""
        count = len(rows)
        behaviors = self.table.behaviors.restore(
            value,
            np.tile(value.knots, (count, 1)),
            np.tile(value.coefficients.ravel(), (count, 1)),
            np.zeros(count),
            np.tile(value.decay, (count, 1)),
            np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (count, 1)),
        )
        counters = np.zeros((count, 7), dtype=np.int64)
        counters[:, 0], counters[:, 1], counters[:, 5] = rows + 1, 1, 1  # id, version, confident
        where = Partition("r", "e", f"intent_{partition}", SUBTASK, -1)
        self.table.restore(where, counters, keys[rows], behaviors)

    def questions(self) -> list[Question]:
        """Return questions of the same world, at the start of the motion."""
        asked = self.world.draw(QUESTIONS, seed=3)
        zero = np.zeros(self.model.n)
        joints = JointSample(self.model.joint_names, self.model.home, zero, zero, 1)
        return [
            Question(key, "r", "e", f"intent_{partition}", SUBTASK, "default", True, joints)
            for key, partition in zip(asked.keys, asked.partitions.tolist(), strict=True)
        ]


def run(size: int) -> dict[str, Any]:
    """Return the figures of one size."""
    threadpool_limits(limits=1)
    cache = Cache(size, 1 if size in EXACT else PARTITIONS)
    questions = cache.questions()
    index, tasks, config = cache.table.tasks.index, cache.table.tasks, cache.config
    searcher, keys = index.searcher(), index.keys
    rows = keys[: index.end].copy(order="C")
    columns = keys[: index.end].copy(order="F")
    scores = np.empty(len(rows), dtype=np.float32)
    threshold, minimum = config.threshold, config.target_minimum
    found: list[int] = []
    hits = 0

    def product(question: Question) -> None:
        np.dot(rows, question.vector[SUMMED_SLICE], out=scores)

    def stored_product(question: Question) -> None:
        np.dot(columns, question.vector[SUMMED_SLICE], out=scores)

    def match(question: Question) -> None:
        nonlocal hits
        row, similarity = searcher.search(question.vector, cache.matcher.partitions(question))
        found.append(row)
        searcher.next_best(row, tasks.behavior)
        slices = searcher.slices.compare(question.vector[SUMMED_SLICE], keys[row])
        hits += similarity > threshold and slices.target >= minimum

    def decision(question: Question) -> None:
        cache.matcher.match(question, searcher)

    steps: dict[str, Callable[[Question], None]] = {"match": match, "decision": decision}
    if size in EXACT:
        steps = {"product": product, "stored_product": stored_product, **steps}
    taken = {name: array("q") for name in steps}
    gc.collect()
    gc.freeze()
    gc.disable()
    clock = time.perf_counter_ns
    block = BLOCKS[size]
    for first in range(0, ROUNDS[size] + WARM_UP, block):
        for name, step in steps.items():
            times = taken[name]
            for number in range(first, first + block):
                question = questions[number % QUESTIONS]
                start = clock()
                step(question)
                times.append(clock() - start)
    figures: dict[str, Any] = {"n": ROUNDS[size], "index": type(index).__name__}
    for name, times in taken.items():
        figures[name] = quantiles(
            (np.array(times[WARM_UP:]) * 1e-3).tolist(), p10=0.1, p50=0.5, p99=0.99, max=1.0
        )
    if size in EXACT:
        for name in ("product", "stored_product"):
            figures[f"match_per_{name}"] = figures["match"]["p50"] / figures[name]["p50"]
    figures["recall"] = recall(cache, questions, found[:QUESTIONS])
    figures["hits"] = hits / len(found)
    figures["build_s"] = cache.seconds
    return figures


def recall(cache: Cache, questions: list[Question], found: list[int]) -> float:
    """Return the share of the first questions whose best row, by exact search, was found."""
    index = cache.table.tasks.index
    good = 0
    for question, row in zip(questions, found, strict=False):
        rows = np.isin(index.partitions[: index.end], cache.matcher.partitions(question))
        cosines = index.keys[: index.end][rows] @ question.vector[SUMMED_SLICE]
        good += float(index.keys[row] @ question.vector[SUMMED_SLICE]) >= cosines.max() - 1e-6
    return good / len(found)


def memory(precision: str) -> dict[str, Any]:
    """Return what 100,000 entries add to a process, and what one holds."""
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    cache = Cache(MEMORY_ENTRIES, 1, precision)
    searchers = [cache.table.tasks.index.searcher() for _ in range(2)]
    for searcher in searchers:  # of the data plane and of questions, beside the table's own
        searcher.search(cache.questions()[0].vector, [0])
    cache.table.tasks.changed.clear()  # as whoever writes them to the disk does
    gc.collect()
    added = process.memory_info().rss - before
    return {
        "entries": MEMORY_ENTRIES,
        "megabytes": added / 1e6,
        "bytes_per_entry": added / MEMORY_ENTRIES,
    }


def measure(case: str) -> dict[str, Any]:
    """Run one case, each time in a process of its own; return the figures of the fastest."""
    command = [sys.executable, __file__, "--case", case]
    runs: list[dict[str, Any]] = []
    for _ in range(REPEATED.get(case, 1)):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{case} failed:\n{done.stderr}")
        runs.append(json.loads(done.stdout.splitlines()[-1]))
    if len(runs) == 1:
        return runs[0]
    medians = [figures["match"]["p50"] for figures in runs]
    return {**min(runs, key=lambda figures: figures["match"]["p50"]), "match_p50s": medians}


def show(report: dict[str, Any]) -> Table:
    """Return a table with a row for each size."""
    timed = ("product", "stored_product", "match", "decision")
    table = Table("entries", "index", "n", title="times in us, p50 / p99")
    for column in (*timed, "match / product", "/ stored", "recall"):
        table.add_column(column.replace("_", " "))
    for size in ROUNDS:
        found = report[str(size)]
        cells = [str(size), found["index"], str(found["n"])]
        for name in timed:
            figures = found.get(name)
            cells.append(f"{figures['p50']:.1f} / {figures['p99']:.1f}" if figures else "-")
        ratios = [found.get(f"match_per_{name}") for name in timed[:2]]
        cells += [f"{ratio:.2f}" if ratio else "-" for ratio in ratios]
        table.add_row(*cells, f"{found['recall']:.3f}")
    return table


def main() -> int:
    """Measure, print and write the figures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("build/reports/match.json"))
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    console = wide_console()
    if options.case:
        size, _, precision = options.case.partition("_")
        figures = memory(precision) if size == "memory" else run(int(size))
        console.out(json.dumps(figures), highlight=False)
        return 0
    report: dict[str, Any] = {
        "machine": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }
    for case in [*map(str, ROUNDS), *(f"memory_{precision}" for precision in PRECISIONS)]:
        with console.status(case):
            report[case] = measure(case)
    console.print(show(report))
    for case in REPEATED:
        medians = ", ".join(f"{median:.1f}" for median in report[case]["match_p50s"])
        console.print(f"match at {case} entries, p50 of each process: {medians} us")
    for precision in PRECISIONS:
        held = report[f"memory_{precision}"]
        console.print(
            f"{held['entries']} entries of {precision} precision: {held['megabytes']:.0f} MB, "
            f"{held['bytes_per_entry']:.0f} bytes each"
        )
    return conclude(report, BOUNDS, options.output, console, check=options.check)


if __name__ == "__main__":
    raise SystemExit(main())
