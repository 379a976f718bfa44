"""Caches in files: what the tests of persistence put together."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kv_action_router.caching.manager import CacheManager
from kv_action_router.caching.store.store import CacheStore


@dataclass
class Bench:
    """Opens the same file again and again."""

    build: Any
    path: Path
    open: list[CacheManager] = field(default_factory=list)
    told: str = ""

    def start(self, path: Path | None = None, **changes: Any) -> CacheManager:
        """Return a manager that keeps its cache in the file."""
        manager = self.build.manager(**{"capacity": 64, **changes})
        self.told = manager.persistence.begin(CacheStore(path or self.path))
        self.open.append(manager)
        return manager

    def stop(self, manager: CacheManager) -> None:
        """End it as a clean-up does."""
        self.open.remove(manager)
        assert manager.persistence.end() == ""

    def vector(self, number: int) -> Any:
        """Return a key that is like no other number's."""
        return self.build.vector(100 + number, 200 + number, 300 + number)

    def insert(self, manager: CacheManager, number: int, **changes: Any) -> int:
        """Insert the entry of a number; return its id."""
        behavior = self.build.behavior(mark=number / 100)
        update = self.build.update(vector=self.vector(number), behavior=behavior, **changes)
        return manager.apply(update).entry_id

    def hits(self, manager: CacheManager, number: int) -> bool:
        """Say whether the key of a number finds the value of that number."""
        answer = manager.query(self.vector(number), intent_id="touch")
        if not answer.hit:
            return False
        value = manager.inspector.entry(answer.entry_id).behavior
        return bool(value.coefficients[-1, 0] == number / 100)

    def filled(self, count: int = 12) -> list[int]:
        """Fill the file and close it; return the ids."""
        manager = self.start()
        ids = [self.insert(manager, number) for number in range(count)]
        self.stop(manager)
        return ids

    def change(self, *statements: tuple[Any, ...]) -> None:
        """Change the closed file behind the store's back."""
        connection = sqlite3.connect(self.path)
        for statement in statements:
            connection.execute(*statement)
        connection.commit()
        connection.close()


@pytest.fixture
def bench(build: Any, tmp_path: Path) -> Iterator[Bench]:
    """A file of the test's own."""
    made = Bench(build, tmp_path / "cache" / "r1.sqlite3")
    yield made
    for manager in made.open:
        manager.persistence.end()
