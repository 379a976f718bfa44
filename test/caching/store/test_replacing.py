"""Names of damaged files: later ones after earlier ones, whatever the system's clock does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.caching.store import replacing, schema

SECOND = 10**9
NOW = 1_700_000_000 * SECOND
TIMES = st.integers(0, 4_000_000_000 * SECOND)


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch):
    def set_to(now_ns: int) -> None:
        clock = {name: getattr(replacing.time, name) for name in ("strftime", "gmtime", "strptime")}
        monkeypatch.setattr(replacing, "time", SimpleNamespace(time_ns=lambda: now_ns, **clock))

    return set_to


def replace_at(path: Path, content: bytes) -> Path:
    """Put another database in the place of one with that content; return where it is kept."""
    path.write_bytes(content)
    schema.connect(path.with_name(path.name + ".ready")).close()
    aside = replacing.finish(path)
    assert aside is not None
    return aside


def test_a_clock_that_was_set_back_removes_the_oldest_and_never_the_newest(tmp_path, set_clock):
    path = tmp_path / "cache.db"
    for number in range(replacing.KEPT_ASIDE):
        set_clock(NOW + number * SECOND)
        replace_at(path, f"damaged {number}".encode())
    for late in (0, 5, NOW // SECOND - 5):  # no battery, and an hour that was set back
        set_clock(late * SECOND)
        aside = replace_at(path, f"set back to {late}".encode())
        assert aside.read_bytes() == f"set back to {late}".encode()
        kept = sorted(tmp_path.glob("*.damaged-*"))
        assert len(kept) == replacing.KEPT_ASIDE
        assert kept[-1] == aside


def test_files_that_somebody_else_named_like_that_stay(tmp_path, set_clock):
    path = tmp_path / "cache.db"
    other = tmp_path / "cache.db.damaged-by-meZ"
    other.write_text("mine")
    for number in range(replacing.KEPT_ASIDE + 2):
        set_clock(NOW + number)
        replace_at(path, b"damaged")
    assert other.read_text() == "mine"


@given(st.lists(TIMES, min_size=1, max_size=6))
def test_names_rise(tmp_path_factory, times):
    path = tmp_path_factory.mktemp("names") / "cache.db"
    true_time, names = replacing.time, []
    try:
        for now_ns in times:
            clock = {name: getattr(true_time, name) for name in ("strftime", "gmtime", "strptime")}
            replacing.time = SimpleNamespace(time_ns=lambda now=now_ns: now, **clock)
            aside = replacing.name_aside(path)
            aside.touch()
            names.append(aside.name)
    finally:
        replacing.time = true_time
    assert names == sorted(set(names))
