"""A cache that outlives its process: tables, what changed in them, and the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from kv_action_router.caching.domains import Domains
from kv_action_router.caching.entries import EntryTable
from kv_action_router.caching.layers.execution import ExecutionLayer
from kv_action_router.caching.store.loading import Loader, load_execution
from kv_action_router.caching.store.recorder import ControlLock, Recorder
from kv_action_router.caching.store.report import NOT_STORED, StoreReport
from kv_action_router.caching.store.state import origin_of
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.contracts import ExecutionValue
from kv_action_router.errors import StoreError

SAVE_TIMEOUT_S = 5.0


class Persistence:
    """Keeps a cache in a store, once it has one; any thread may call.

    Invariant: whatever is changed under ``lock`` is given to the store before the lock is let go.
    The data plane takes no part in it.
    """

    def __init__(
        self,
        entries: EntryTable,
        domains: Domains,
        execution: ExecutionLayer,
        initial: ExecutionValue | None,
        clock: Callable[[], int],
    ) -> None:
        """Watch these tables; ``initial`` is the own domain's execution value from the file."""
        self._entries = entries
        self._domains = domains
        self._execution = execution
        self._origins = {domains.own: origin_of(initial)} if initial else {}
        self._recorder = Recorder(entries, domains, execution, self._origins, clock)
        self._store: CacheStore | None = None
        self.lock = ControlLock(self._recorder.collect)

    @property
    def is_stored(self) -> bool:
        """Whether what is learned reaches a file."""
        return self._store is not None and self._store.stored

    def begin(self, store: CacheStore) -> str:
        """Load what a store holds, and keep there what is learned; return a line for people.

        To be called before anything else, on an empty cache.

        Raises:
            StoreError: it cannot be read.
        """
        with self.lock:
            self._store = store
            try:
                loaded = Loader(self._entries, self._domains).load(store)
            except sqlite3.Error as error:  # the disk fails while a file is read that was whole
                raise StoreError(f"{store.path} cannot be read: {error}") from error
            notes = load_execution(store, self._execution, self._origins)
            store.start(loaded)
            self._recorder.attach(store)
            return "; ".join([store.summary(), *notes])

    def save(self, timeout_s: float = SAVE_TIMEOUT_S) -> int:
        """Return the number of entries in the file, once the disk has all that was learned.

        Raises:
            StoreError: it does not, and why.
        """
        if self._store is None:
            raise StoreError(f"nothing is saved: {NOT_STORED.where}")
        with self.lock:
            self._recorder.note_use()
        return self._store.save(timeout_s)

    def end(self) -> str:
        """Write what is not written yet, let go of the file; return what went wrong, if any."""
        if self._store is None:
            return ""
        with self.lock:
            self._recorder.note_use()
        self._recorder.detach()
        return self._store.close()

    def report(self) -> StoreReport:
        """Return the state of the store."""
        return self._store.report() if self._store else NOT_STORED
