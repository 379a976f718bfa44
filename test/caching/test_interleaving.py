"""A writer and a reader of the cache, each stopped at every line of the other: nothing is torn.

What a race shows now and then is tried here at every place: the one that is stopped runs under a
trace function, which lets the other run as a whole before a line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from kv_action_router.caching import entries, match
from kv_action_router.caching.index import base, exact
from kv_action_router.caching.invalidation import Invalidation, Scope
from kv_action_router.caching.layers import behavior, shelves, slots, task
from kv_action_router.caching.manager import CacheManager
from kv_action_router.contracts import CacheMatch

# What a reader and a writer share.
CODE = {module.__file__ for module in (base, behavior, entries, exact, match, shelves, slots, task)}
INTENTS = ("touch", "press")  # of either key: the other's entry is no candidate
CAPACITY, SPARE = 2, 2
MANY = CAPACITY + SPARE + 1  # writings after which a slot was given out again


def at_lines(stopped: Callable[[], Any], between: Callable[[int], None]) -> int:
    """Run ``stopped`` and call ``between`` before each line of the shared code; return how many.

    Args:
        stopped: what is stopped.
        between: takes the number of the line, counted from 0; is not traced itself.
    """
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename not in CODE:
            return None
        if event == "line":
            sys.settrace(None)
            between(count)
            count += 1
            sys.settrace(trace)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        stopped()
    finally:
        sys.settrace(before)
    return count


def at_every_line(run: Callable[[int], int]) -> int:
    """Run once for each line: ``run`` takes the line that it acts at, and returns how many were."""
    line, lines = 0, 1
    while line < lines:
        lines = run(line)
        line += 1
    return line


class Cache:
    """A cache whose values tell what they are: the mark of each says for which key it was written,
    and as which version of its entry.
    """

    def __init__(self, build: Any) -> None:
        self.build = build
        self.manager: CacheManager = build.manager(capacity=CAPACITY)
        self.written = [0, 0]  # versions of the entry of either key
        self.decision = 0

    def vector(self, number: int) -> Any:
        return self.build.vector(10 + number, 20 + number, 30 + number)

    def mark(self, number: int, version: int) -> float:
        return 1e-4 * version if number == 0 else -1e-4 * version

    def write(self, number: int) -> None:
        """Replace the value of a key's entry, or make the entry."""
        self.written[number] += 1
        value = self.build.behavior(mark=self.mark(number, self.written[number]))
        done = self.manager.apply(
            self.build.update(vector=self.vector(number), behavior=value, intent_id=INTENTS[number])
        )
        assert done.version == self.written[number]

    def remove(self, number: int) -> None:
        """Let a key have no entry."""
        self.manager.invalidate(Invalidation(Scope.TASK, "test", intent_id=INTENTS[number]))
        self.written[number] = 0

    def drop_behaviors(self) -> None:
        """Let the entries stay without their behavior."""
        self.manager.invalidate(Invalidation(Scope.LAYER, "test", layer="behavior"))

    def read(self, number: int) -> CacheMatch:
        """Let a key decide on the data plane, which takes no lock."""
        self.decision += 1
        key = self.build.key(self.vector(number))
        match: CacheMatch = self.build.decide(
            self.manager, self.decision, key, intent=INTENTS[number]
        )
        assert match.is_decision
        return match

    def is_whole(self, number: int, match: CacheMatch) -> bool:
        """Say whether all parts of a hit are of one version of this key's entry."""
        value = match.behavior
        assert value is not None and value.target is not None
        mark = self.mark(number, match.entry_version)
        return bool((value.coefficients[1:] == mark).all()) and value.target.position[1] == mark


@pytest.fixture
def cache(build: Any, monkeypatch: pytest.MonkeyPatch) -> Cache:
    """With an entry for either key, and with few slots, which all hold what was."""
    monkeypatch.setattr(slots, "SPARE", SPARE)
    made = Cache(build)
    for _ in range(MANY):
        made.write(0)
    made.write(1)
    return made


def test_a_writer_that_is_stopped_anywhere_shows_whole_values(cache: Cache) -> None:
    """Replacing: at every line the reader finds the version before or the one after."""
    found: list[int] = []

    def look(_: int) -> None:
        match = cache.read(0)
        assert match.hit, match.reason
        assert cache.is_whole(0, match)
        found.append(match.entry_version)

    assert at_lines(lambda: cache.write(0), look) > 20
    assert found == sorted(found)
    assert set(found) == {MANY, MANY + 1}


@pytest.mark.parametrize(
    "write",
    [
        lambda cache: cache.remove(0),
        lambda cache: cache.drop_behaviors(),
        lambda cache: [cache.remove(0), cache.write(0)],
    ],
    ids=["remove", "drop", "make"],
)
def test_a_writer_that_makes_or_removes_shows_a_whole_value_or_none(
    cache: Cache, write: Callable[[Cache], Any]
) -> None:
    hits: list[bool] = []

    def look(_: int) -> None:
        match = cache.read(0)
        assert not match.hit or cache.is_whole(0, match)
        hits.append(match.hit)

    at_lines(lambda: write(cache), look)
    assert set(hits) == {True, False}


@pytest.mark.parametrize("times", [1, MANY])
def test_a_reader_that_is_stopped_anywhere_reads_whole_values(cache: Cache, times: int) -> None:
    """What it looks at is replaced, and the slot given away: it finds the newer one."""

    def read_with_a_stop_at(stop: int) -> int:
        def replace(line: int) -> None:
            if line == stop:
                for _ in range(times):
                    cache.write(0)

        def read() -> None:
            match = cache.read(0)
            assert match.hit, match.reason
            assert cache.is_whole(0, match)

        return at_lines(read, replace)

    assert at_every_line(read_with_a_stop_at) > 40


@pytest.mark.parametrize("drop", [False, True])
def test_a_reader_never_gets_what_took_a_slot_over(cache: Cache, drop: bool) -> None:
    """The entry, or its behavior alone, is thrown away, and the slots go to another entry."""

    def read_with_a_stop_at(stop: int) -> int:
        def throw_away(line: int) -> None:
            if line == stop:
                cache.drop_behaviors() if drop else cache.remove(0)
                for _ in range(MANY):
                    cache.write(1)

        def read() -> None:
            match = cache.read(0)
            assert not match.hit or cache.is_whole(0, match)

        lines = at_lines(read, throw_away)
        cache.write(0)
        return lines

    assert at_every_line(read_with_a_stop_at) > 40
