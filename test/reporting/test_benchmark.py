"""A benchmark writes what it measured, names what falls short, and fails only when asked to."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from kv_action_router.reporting.benchmark import conclude
from kv_action_router.reporting.bounds import Bound, at

BOUNDS = (Bound("lateness", at("late", "p99"), "<=", 5.0),)


@pytest.mark.parametrize(
    ("p99", "check", "code"), [(4.0, True, 0), (6.0, True, 1), (6.0, False, 0), (None, True, 1)]
)
def test_the_exit_code_says_what_falls_short(
    tmp_path: Path, p99: float | None, check: bool, code: int
) -> None:
    text = io.StringIO()
    report = {"late": {"p99": p99}}
    path = tmp_path / "new" / "report.json"
    assert conclude(report, BOUNDS, path, Console(file=text, width=200), check=check) == code
    judged = {"name": "lateness", "value": p99, "compare": "<=", "limit": 5.0, "holds": p99 == 4.0}
    assert json.loads(path.read_text()) == {**report, "judged": [judged]}
    assert ("falls short: lateness" in text.getvalue()) == (p99 is None or p99 > 5.0)
