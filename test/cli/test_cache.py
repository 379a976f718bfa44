"""Verbs of ``kv_router`` about the cache: what they ask for, and how the answers are shown."""

from __future__ import annotations

import contextlib
import json
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from kv_action_router.cli import cache_tables as tables
from kv_action_router.cli.main import main
from kv_action_router.errors import ConfigError, RouterError

INFO = {
    "entry_id": 3,
    "entry_version": 2,
    "domain": "r1",
    "encoder_id": "e1",
    "intent_id": "touch",
    "subtask": "touch_approach_v1",
    "successes": 5,
    "failures": 1,
    "failures_in_row": 1,
    "confident": True,
    "has_behavior": True,
    "unused_for": 7,
}
BEHAVIOR = {
    "knots": [0.0, 0.0, 1.5, 1.5],
    "coefficients": [1.0, 2.0, 3.0, 4.0],
    "dimension": ["a/position", "b/position"],
}
LAYER = {
    "layer": "task",
    "domain": "r1",
    "entries": 4,
    "capacity": 10,
    "decisions": 8,
    "hits": 6,
    "false_hits": 1,
    "evictions": 2,
    **{f"misses_{name}": 0 for name in tables.MISSES},
    **{f"invalidations_{name}": 0 for name in tables.CAUSES},
    "misses_guard": 2,
    "invalidations_condition": 3,
}
WHY = {
    "hit": False,
    "reason": "entry 3: similarity 0.700 is not above 0.720 (scene 'warehouse')",
    "similarity": 0.7,
    "threshold": 0.72,
    "margin": None,
    "target_similarity": 0.9,
    "target_minimum": 0.75,
    "worst_slice": "scene",
    "worst_slice_similarity": 0.1,
    "guard": "",
    "entry_id": 3,
    "subtask": "touch_approach_v1",
}
IN_FORCE = {
    **WHY,
    "decision_id": 5,
    "scene": "warehouse",
    "guard": "collision",
    "reason": "entry 3: refused by guard collision: tool - obstacle 0 at 0.50 s",
}
EXPLANATION = {**WHY, "source_domain": "r1", "in_force": IN_FORCE}
STATISTICS = {
    "robot_id": "r1",
    "layers": [LAYER, {**LAYER, "domain": "r2", "decisions": 0, "hits": 0}],
    "keys": 100,
    "keys_refused": 0,
    "updates_refused": 1,
    "match_time_p50_us": 12.34,
    "match_time_p99_us": 56.7,
    "match_time_max_us": None,
}


class Client:
    """Notes what is asked and answers with what fits."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.error: Exception | None = None

    def __getattr__(self, name: str) -> Any:
        answers = {
            "explain": EXPLANATION,
            "entries": {"entries": [INFO], "remaining": 9},
            "entry": {"info": INFO, "key": [0.0], "behavior": BEHAVIOR},
            "domains": {"domains": [], "identity_conflict": ""},
            "set_isolation": {"message": "done", "grants": ["r1 -> r2"]},
            "invalidate": {"message": "1 thrown away: x", "count": 1},
            "statistics": STATISTICS,
        }

        def ask(*words: Any, **fields: Any) -> Any:
            if self.error is not None:
                raise self.error
            self.asked.append((name, *words, fields) if fields else (name, *words))
            return answers[name]

        return ask


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    """In the place of a connection; needs no ROS."""
    made = Client()

    @contextlib.contextmanager
    def connected(namespace: str, timeout: float) -> Iterator[Client]:
        made.asked.append(("connected", namespace, timeout))
        yield made

    module = types.ModuleType("kv_action_router.ros.cache_client")
    module.connected = connected
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return made


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("explain", ("explain", "", "", "")),
        ("explain --domain r2 --intent t --subtask s_v1", ("explain", "r2", "t", "s_v1")),
        ("entries", ("entries", "", "", "", 0, 0)),
        (
            "entries --domain r2 --intent t --subtask s_v1 --after 4 --limit 2",
            ("entries", "r2", "t", "s_v1", 4, 2),
        ),
        ("get 3 --domain r2", ("entry", 3, "r2")),
        ("domains list", ("domains",)),
        ("domains share r1 r2", ("set_isolation", "r1", "r2", False)),
        ("domains revoke r1 r2", ("set_isolation", "r1", "r2", True)),
        (
            "invalidate entry 3 --reason x",
            ("invalidate", "entry", "x", {"entry_id": 3, "domain": ""}),
        ),
        (
            "invalidate task t --domain r2 --reason x",
            ("invalidate", "task", "x", {"intent_id": "t", "domain": "r2"}),
        ),
        (
            "invalidate layer execution --reason x",
            ("invalidate", "layer", "x", {"entry_id": 0, "layer": "execution", "domain": ""}),
        ),
        ("invalidate domain r2 --reason x", ("invalidate", "domain", "x", {"domain": "r2"})),
        ("invalidate all --reason x", ("invalidate", "all", "x")),
        ("statistics", ("statistics",)),
    ],
)
def test_what_a_verb_asks(
    client: Client, capsys: pytest.CaptureFixture[str], words: str, asked: tuple[Any, ...]
) -> None:
    arguments = [*words.split(), "--namespace", "robot1"]
    assert main(arguments) == 0
    assert capsys.readouterr().out.strip()
    assert main([*arguments, "--json", "--timeout", "2"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert client.asked == [
        ("connected", "robot1", 5.0), asked, ("connected", "robot1", 2.0), asked,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [
        "",
        "nothing",
        "get",
        "get -1",
        "get x",
        f"get {2**64}",
        "domains",
        "domains share r1",
        "invalidate all",
        "invalidate entry --reason x",
        "entries --timeout 0",
        "entries --timeout soon",
        "entries --timeout nan",
    ],
)
def test_what_is_not_asked_properly(
    client: Client, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code == 2
    assert "usage: kv_router" in capsys.readouterr().err
    assert not client.asked


@pytest.mark.parametrize(
    ("error", "code"), [(RouterError("no"), 1), (ConfigError("x", "y", "z"), 2)]
)
def test_a_refusal_is_one_line_and_a_code(
    client: Client, capsys: pytest.CaptureFixture[str], error: Exception, code: int
) -> None:
    client.error = error
    assert main(["domains", "list"]) == code
    assert capsys.readouterr().err == f"kv_router: {error}\n"


def test_an_explanation_is_shown_with_every_reason_and_what_the_task_goes_by() -> None:
    first, *rows, last = tables.show_explanation(EXPLANATION).splitlines()
    assert first == f"miss ({WHY['reason']})"
    shown = [" ".join(row.split()) for row in rows]
    for row in (
        "similarity 0.7000 (threshold 0.720)",
        "margin -",
        "target slice 0.9000 (minimum 0.750)",
        "worst slice scene (0.1000)",
        "guard none refused",
        "scene warehouse",
    ):
        assert row in shown
    assert last == f"decision 5 of touch_approach_v1 is in force: miss ({IN_FORCE['reason']})"
    hit = {**EXPLANATION, "hit": True, "in_force": {**IN_FORCE, "decision_id": 0, "reason": "idle"}}
    first, *_, last = tables.show_explanation(hit).splitlines()
    assert first.startswith("hit: entry 3 (")
    assert last == "no decision is in force: idle"


def test_entries_are_shown_with_where_to_go_on() -> None:
    text = tables.show_entries({"entries": [INFO], "remaining": 9})
    head, row, more = text.splitlines()
    assert head.split()[:3] == ["id", "version", "domain"]
    assert row.split()[:5] == ["3", "2", "r1", "touch", "touch_approach_v1"]
    assert more == "and 9 more: --after 3"


def test_an_entry_is_shown_with_its_state_and_motion() -> None:
    answer = {"info": INFO, "key": [], "behavior": BEHAVIOR}
    text = tables.show_entry(answer)
    assert "1.500 s, 2 coefficients a column" in text
    assert "1 (1 in a row)" in text
    answer["info"] = {**INFO, "has_behavior": False}
    assert "no behavior" in tables.show_entry(answer)
    answer["info"] = {**INFO, "confident": False}
    assert "not confident" in tables.show_entry(answer)


def test_domains_are_shown_with_what_keeps_them_from_being_shared() -> None:
    domain = {
        "name": "r1", "is_own": True, "entries": 2, "entries_not_confident": 1, "readers": ["r2"],
    }  # fmt: skip
    text = tables.show_domains({"domains": [domain], "identity_conflict": ""})
    assert text.splitlines()[1].split() == ["r1", "(own)", "2", "1", "r2"]
    conflict = {"domains": [domain], "identity_conflict": "robot_id 'r1' is claimed by /x too"}
    assert "nothing can be shared while robot_id 'r1'" in tables.show_domains(conflict)


def test_statistics_are_shown_with_reasons_and_causes() -> None:
    about, _, first, second = tables.show_statistics(STATISTICS).splitlines()
    assert "robot r1: 100 keys" in about
    assert "p50 12.3, p99 56.7, max - us" in about
    assert "0.750" in first
    assert "guard 2" in first
    assert "condition 3, evicted 2" in first
    assert second.split()[5] == "-"  # no decision, no rate
