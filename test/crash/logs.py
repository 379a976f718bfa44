"""Damages the log that a killed process left, and looks whether what is missing is told."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import damage


def truncated_log(original: damage.Original, folder: Path, sizes: Iterable[int]) -> damage.Outcome:
    """Cut the log that a killed process left; what was committed before the cut is found."""
    log = Path(f"{original.log_copy}-wal").read_bytes()
    return _damaged_log(original, folder, (log[:size] for size in sizes))


def flipped_log(
    original: damage.Original, folder: Path, runs: int, draw: random.Random
) -> damage.Outcome:
    """Flip a bit of that log; what was committed before it is found."""

    def contents() -> Iterable[bytes]:
        log = Path(f"{original.log_copy}-wal").read_bytes()
        for _ in range(runs):
            content, bit = bytearray(log), draw.randrange(8 * len(log))
            content[bit // 8] ^= 1 << bit % 8
            yield bytes(content)

    return _damaged_log(original, folder, contents())


def _damaged_log(
    original: damage.Original, folder: Path, contents: Iterable[bytes]
) -> damage.Outcome:
    """Open a file beside logs; some commit's state is found, and what is missing is told."""
    outcome = damage.Outcome()
    for run, content in enumerate(contents):
        path = damage.fresh(folder)
        for suffix in damage.WITH_LOG:
            shutil.copy(f"{original.log_copy}{suffix}", f"{path}{suffix}")
        Path(f"{path}-wal").write_bytes(content)
        lost = outcome.lost
        found = damage.look(outcome, original, path, f"run {run}", set())
        whole = len(original.rows)
        if found != set(range(1, len(found) + 1)) or (
            len(found) % damage.COMMIT and len(found) < whole
        ):
            outcome.wrong.append(f"run {run}: not what some commit has left")
        if outcome.lost - lost != whole - len(found):
            outcome.wrong.append(
                f"run {run}: {whole - len(found)} are lost, told {outcome.lost - lost}"
            )
    return outcome
