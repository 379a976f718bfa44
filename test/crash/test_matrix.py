"""A small share of the crash matrix; ``make test-crash`` runs all of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory):
    """A file of 40 entries: five pages."""
    import damage

    return damage.Original(tmp_path_factory.mktemp("crash") / "original.sqlite3", 40)


@pytest.mark.timeout(180)
def test_nothing_confirmed_is_lost_by_kills(tmp_path: Path) -> None:
    import killing

    done = killing.kill_under_load(tmp_path / "c.sqlite3", 4)
    assert done.runs == 4
    assert done.lost == []


@pytest.mark.timeout(180)
def test_a_confirmation_without_a_commit_is_found_out(tmp_path: Path) -> None:
    """The measure itself: a child that confirms before it saves is caught."""
    import killing

    done = killing.kill_under_load(tmp_path / "c.sqlite3", 2, target=killing.liar)
    assert done.lost


def test_files_that_end_too_early(original, tmp_path: Path) -> None:
    import damage

    draw = random.Random(7)
    sizes = [draw.randrange(1, len(original.content)) for _ in range(6)]
    outcome = damage.truncated(original, tmp_path / "d", sizes)
    assert outcome.wrong == []
    assert outcome.whole <= outcome.loaded


def test_files_with_flipped_bits(original, tmp_path: Path) -> None:
    import damage

    outcome = damage.flipped(original, tmp_path / "d", 8, random.Random(3))
    assert outcome.wrong == []
    assert outcome.runs == 8


def test_logs_that_end_too_early(original, tmp_path: Path) -> None:
    import logs

    size = Path(f"{original.log_copy}-wal").stat().st_size
    outcome = logs.truncated_log(original, tmp_path / "d", [0, 31, size // 2, size - 1])
    assert outcome.wrong == []
    assert outcome.lost > 0


def test_logs_with_a_flipped_bit(original, tmp_path: Path) -> None:
    import logs

    outcome = logs.flipped_log(original, tmp_path / "d", 6, random.Random(5))
    assert outcome.wrong == []
    assert outcome.lost > 0


def test_what_is_no_damage(original, tmp_path: Path) -> None:
    import damage

    for name, outcome in damage.unusual(original, tmp_path / "d").items():
        assert outcome.wrong == [], name
