"""Kills a process that changes a cache, at random moments, and looks what the file says."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import load

STARTED = 0  # confirmation that the file was opened
WAIT_S = 60.0
AHEAD = 300  # changes that a child may have made beyond the last confirmed one
LONGEST_S = 0.08


@dataclass
class Kills:
    """What kills did.

    Attributes:
        runs, while_opening: kills; of these, how many before the file was open.
        confirmed: changes that were confirmed before the kills, over all runs.
        found_beyond: changes that were found though nobody had confirmed them yet.
        lost: what must not be, in words.
    """

    runs: int = 0
    while_opening: int = 0
    confirmed: int = 0
    found_beyond: int = 0
    lost: list[str] = field(default_factory=list)


def child(path: Path, seed: int, told: Connection) -> None:
    """Change the cache and save it; tell after each save how many changes it holds."""
    manager, _ = load.start(path)
    told.send(STARTED)
    draw = random.Random(seed)
    for count in load.changes(manager, seed):
        if draw.random() < 0.3:
            manager.persistence.save(WAIT_S)
            told.send(count)


def liar(path: Path, seed: int, told: Connection) -> None:
    """Do the same, but tell before it is saved: what a check of saved changes must find out."""
    manager, _ = load.start(path)
    told.send(STARTED)
    for count in load.changes(manager, seed):
        told.send(count)
        time.sleep(0.01)


@contextmanager
def forking() -> Iterator[multiprocessing.context.BaseContext]:
    """Yield a context whose processes start at once: they are forked from one that imported all."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", "killing"])
    before = os.environ.get("PYTHONPATH")
    # Up to Python 3.12 the server does not hear of sys.path, and preloads nothing without a word.
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        yield context
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before


def kill_under_load(
    path: Path,
    runs: int,
    seed: int = 1,
    target: Callable[[Path, int, Connection], None] = child,
) -> Kills:
    """Start, kill, look: again and again on the same file.

    After each kill the file must hold exactly what the sequence of changes leads to after some
    number of them, and not fewer than were confirmed.
    """
    draw, done = random.Random(seed), Kills()
    before, _ = load.start(path)
    before.persistence.end()
    with forking() as context:
        for run in range(runs):
            mine, theirs = context.Pipe(duplex=False)
            process = context.Process(target=target, args=(path, run, theirs))
            process.start()
            theirs.close()
            opening = draw.random() < 0.2
            if not opening and not mine.poll(WAIT_S):
                raise RuntimeError(f"child of run {run} did not start")
            time.sleep(draw.uniform(0.0, LONGEST_S))
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
            process.join(WAIT_S)
            confirmed, started = _confirmed(mine)
            after, told = load.start(path)
            after.persistence.end()
            done.runs += 1
            done.while_opening += not started
            done.confirmed += confirmed
            wanted = load.digest(after)
            at = _changes_until(before, run, wanted, confirmed)
            report = after.persistence.report()
            if at is None or report.lost or report.quarantined or "damaged" in told:
                done.lost.append(f"run {run}: {confirmed} confirmed, {told}")
            else:
                done.found_beyond += at - confirmed
            before = after
    return done


def _confirmed(told: Connection) -> tuple[int, bool]:
    last, started = 0, False
    try:
        while told.poll(0):
            last, started = told.recv(), True
    except (EOFError, OSError):
        pass
    return last, started


def _changes_until(manager: load.CacheManager, seed: int, wanted: int, least: int) -> int | None:
    """Replay a child's changes until the cache is as it was found; None = it never is."""
    if least == 0 and load.digest(manager) == wanted:
        return 0
    for count in load.changes(manager, seed):
        if count >= least and load.digest(manager) == wanted:
            return count
        if count > least + AHEAD:
            return None
    return None
