"""The decision log: what was written is read back; what is broken is counted, never guessed."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.caching.decision_log import FORMAT, DecisionLog, read_log
from kv_action_router.contracts import (
    CacheMatch,
    Decision,
    EntryUpdate,
    MissReason,
    Trigger,
    UpdateOperation,
)
from kv_action_router.errors import InputError


def match(trace_id: int, similarity: float = 0.9, hit: bool = True) -> CacheMatch:
    return CacheMatch(
        decision=Decision(trace_id=trace_id, stamp_ns=5, domain="a", scene="table", intent_id="i"),
        trigger=Trigger.IMAGE,
        hit=hit,
        is_decision=True,
        miss_reason=MissReason.NONE if hit else MissReason.SIMILARITY,
        reason="because",
        similarity=similarity,
        threshold=0.85,
        margin=math.nan,
        target_similarity=0.8,
        target_minimum=0.75,
        worst_slice="body",
        worst_slice_similarity=0.7,
        guard="",
        entry_id=3 if hit else 0,
        entry_version=1,
        subtask="touch_v1",
        behavior=None,
        target=None,
        target_age=0.0,
        vector=None,
        joints=None,
    )


def update(trace_id: int, operation: UpdateOperation, false_hit: bool = False) -> EntryUpdate:
    return EntryUpdate(
        decision=Decision(trace_id=trace_id),
        operation=operation,
        entry_id=3,
        entry_version=1,
        vector=None,
        behavior=None,
        execution=None,
        error=0.002,
        false_hit=false_hit,
        reason="",
    )


def test_an_outcome_is_joined_to_its_decision(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "new" / "log.jsonl")
    log.note(match(7))
    log.note(match(8, similarity=math.nan, hit=False))
    log.end(update(7, UpdateOperation.FAILURE, false_hit=True))
    log.end(update(8, UpdateOperation.EXECUTION))  # ends no decision
    log.close()
    (first, second), bad = read_log(log.path)
    assert bad == 0
    assert (first.outcome, first.false_hit, first.error) == ("failure", True, 0.002)
    assert (first.scene, first.subtask, first.entry_id) == ("table", "touch_v1", 3)
    assert second.outcome == ""
    assert math.isnan(second.similarity) and not second.hit


def test_an_outcome_may_be_written_before_its_decision(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "log.jsonl")
    log.end(update(7, UpdateOperation.SUCCESS))
    log.note(match(7))
    log.close()
    (decision,), bad = read_log(log.path)
    assert (decision.outcome, bad) == ("success", 0)


def test_what_is_no_line_of_a_log_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = DecisionLog(path)
    log.note(match(7))
    log.close()
    whole = path.read_text()
    others = ["5", "nonsense", "{}", '{"outcome": "success", "trace_id": "unknown"}', "[]"]
    path.write_text(whole + "\n".join(others) + "\n" + whole[: len(whole) // 2])
    found, bad = read_log(path)
    assert [decision.trace_id for decision in found] == ["7"]
    assert bad == len(others) + 1


@given(cut=st.integers(0, 2000))
def test_a_log_that_was_cut_gives_its_whole_lines(
    cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "log.jsonl"
    log = DecisionLog(path)
    for trace_id in range(1, 5):
        log.note(match(trace_id))
    log.close()
    data = path.read_bytes()[:cut]
    path.write_bytes(data)
    found, bad = read_log(path)
    whole = data.count(b"\n") + (data.endswith(b"}"))
    assert len(found) == whole
    assert bad == (1 if data and not data.endswith((b"\n", b"}")) else 0)


def test_a_log_of_a_later_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"decision": FORMAT + 1, "trace_id": "1"}) + "\n")
    with pytest.raises(InputError, match=f"format {FORMAT} or earlier, got {FORMAT + 1}"):
        read_log(path)


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"log must be a file that can be read, got .*none\.jsonl"):
        read_log(tmp_path / "none.jsonl")


def test_a_log_that_cannot_be_written_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log = DecisionLog(tmp_path / "file" / "log.jsonl")  # its folder is a file
    with pytest.raises(OSError):
        log.note(match(1))
    log.note(match(2))
    log.end(update(2, UpdateOperation.SUCCESS))


def test_a_full_log_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = DecisionLog(path, limit=1000)
    for trace_id in range(1, 8):
        log.note(match(trace_id))
    log.close()
    older, _ = read_log(path.with_name("log.jsonl.1"))
    newer, _ = read_log(path)
    assert [int(d.trace_id) for d in (*older, *newer)][-3:] == [5, 6, 7]
    assert path.stat().st_size < 2000
