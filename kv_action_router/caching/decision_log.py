"""Decisions and their outcomes, a JSON line each: what thresholds are calibrated from.

A decision's line says what was asked, what was found and how like it was; an outcome's line, with
the same trace id, says how it ended. The file is appended to beside the data plane, never on it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kv_action_router.contracts import CacheMatch, EntryUpdate, UpdateOperation
from kv_action_router.errors import InputError

FORMAT = 1  # rises when a line's meaning changes
_OUTCOMES = {
    UpdateOperation.SUCCESS: "success",
    UpdateOperation.FAILURE: "failure",
    UpdateOperation.INSERT: "inserted",
}
_JOINED = ("outcome", "false_hit", "error")


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """One decision and, once known, its outcome; similarities are NaN where not measured.

    Attributes:
        trace_id: of the decision.
        stamp_ns: header stamp of the key that made it [ns].
        domain, source_domain: that asked, and that the entry is of.
        scene: whose threshold applied.
        intent_id, subtask: asked for.
        hit: it was one.
        reason: for people.
        similarity, threshold, margin, target_similarity: as in ``CacheMatch``.
        worst_slice: that disagreed most.
        guard: that refused; empty = none.
        entry_id: found best; 0 = none.
        outcome: success, failure or inserted; empty = not known.
        false_hit: the hit ended badly.
        error: distance from the stage's goal at its end [m].
    """

    trace_id: str
    stamp_ns: int
    domain: str
    source_domain: str
    scene: str
    intent_id: str
    subtask: str
    hit: bool
    reason: str
    similarity: float
    threshold: float
    margin: float
    target_similarity: float
    worst_slice: str
    guard: str
    entry_id: int
    outcome: str = ""
    false_hit: bool = False
    error: float = math.nan


class DecisionLog:
    """Appends to a log. One thread may use it.

    Invariant: a line is whole or, after a crash, the last one of its file. A log that cannot be
    written says so once, by the error that ``note`` and ``end`` raise, and is silent from then on:
    it must not stop the robot.
    """

    def __init__(self, path: Path, limit: int = 64 << 20) -> None:
        """Append to ``path``; past ``limit`` bytes it is renamed to ``<path>.1`` and begun anew."""
        self.path = path
        self._limit = limit
        self._broken = False
        self._file: IO[str] | None = None

    def note(self, match: CacheMatch) -> None:
        """Write a decision down.

        Raises:
            OSError: the first time that it cannot be written.
        """
        header = match.decision
        self._append(
            {
                "decision": FORMAT,
                "trace_id": str(header.trace_id),
                "stamp_ns": header.stamp_ns,
                "domain": header.domain,
                "source_domain": header.source_domain,
                "scene": header.scene,
                "intent_id": header.intent_id,
                "subtask": match.subtask,
                "hit": match.hit,
                "reason": match.reason,
                "similarity": match.similarity,
                "threshold": match.threshold,
                "margin": match.margin,
                "target_similarity": match.target_similarity,
                "worst_slice": match.worst_slice,
                "guard": match.guard,
                "entry_id": match.entry_id,
            }
        )

    def end(self, update: EntryUpdate) -> None:
        """Write down how a decision ended; updates that end none are passed over.

        Raises:
            OSError: the first time that it cannot be written.
        """
        outcome = _OUTCOMES.get(update.operation)
        if outcome is None or not update.decision.trace_id:
            return
        self._append(
            {
                "outcome": outcome,
                "trace_id": str(update.decision.trace_id),
                "false_hit": update.false_hit,
                "error": update.error,
            }
        )

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, line: dict[str, Any]) -> None:
        if self._broken:
            return
        try:
            file = self._file or self._open()
            values = {name: _plain(value) for name, value in line.items()}
            file.write(json.dumps(values, ensure_ascii=False) + "\n")
            file.flush()
            if file.tell() > self._limit:
                self.close()
                self.path.replace(self.path.with_name(self.path.name + ".1"))
        except OSError:
            self._broken = True
            self.close()
            raise

    def _open(self) -> IO[str]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = file = self.path.open("a", encoding="utf-8")
        return file


def read_log(path: Path) -> tuple[list[LoggedDecision], int]:
    """Return the decisions of a log in order, outcomes joined, and how many lines told nothing.

    Raises:
        InputError: the file cannot be read, or is of a later format.
    """
    decisions: list[dict[str, Any]] = []
    outcomes: dict[str, dict[str, Any]] = {}
    bad = newest = 0
    for line in _lines(path):
        try:
            values = {name: _number(value) for name, value in json.loads(line).items()}
            if "decision" in values:
                newest = max(newest, values.pop("decision"))
                LoggedDecision(**values)
                decisions.append(values)
            else:  # it may stand before its decision: the two are written by different hands
                outcomes[values.pop("trace_id")] = {name: values[name] for name in _JOINED}
        except (ValueError, TypeError, KeyError, AttributeError):
            bad += 1
    if newest > FORMAT:
        raise InputError("log", f"of format {FORMAT} or earlier", newest)
    found = [LoggedDecision(**v, **outcomes.pop(v["trace_id"], {})) for v in decisions]
    return found, bad + len(outcomes)


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            yield from file
    except OSError as error:
        raise InputError("log", "a file that can be read", f"{path} ({error.strerror})") from error


def _plain(value: Any) -> Any:
    """Return a value that strict JSON has: NaN becomes null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    return math.nan if value is None else value
