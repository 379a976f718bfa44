"""The cache's file, as its node sees it: loaded, flushed, closed; failures are told."""

from __future__ import annotations

from kv_action_router.caching.manager import CacheManager
from kv_action_router.caching.store.location import store_file
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.errors import StoreError
from kv_action_router.ros.lifecycle import StageNode

FLUSH_S = 1.5  # that long a deactivation waits for the disk; a process has 4 s to end


class StoredCache:
    """Belongs to the executor's thread.

    Invariant: the file is locked from construction to :meth:`close`, if there is one.
    """

    def __init__(
        self, node: StageNode, manager: CacheManager, store_path: str, robot_id: str
    ) -> None:
        """Load what a robot's cache held when it ended, and keep what it learns from now on.

        Raises:
            StoreInUseError: another process has the file.
            StoreError: nothing can be read.
        """
        self._node = node
        self._persistence = manager.persistence
        self._failed = 0
        path = store_file(store_path, robot_id)
        if path is None:
            node.get_logger().info("the cache is kept in memory (store_path)")
            return
        store = CacheStore(path)
        try:
            told = self._persistence.begin(store)
        except BaseException:
            self._persistence.end()
            raise
        if store.wants_attention:
            self._report(told)
        else:
            node.get_logger().info(told)

    def watch(self) -> None:
        """Tell when the disk refuses, and when it takes again; to be called now and then."""
        report = self._persistence.report()
        if report.saves_failed > self._failed:
            self._report(f"{report.unsaved} changes are not saved yet: {report.where}")
            self._failed = report.saves_failed

    def flush(self) -> None:
        """Wait, not for long, until what was learned is written."""
        if not self._persistence.is_stored:
            return
        try:
            self._persistence.save(FLUSH_S)
        except StoreError as error:
            self._report(str(error))

    def close(self) -> None:
        """Write what is left, and let go of the file."""
        if wrong := self._persistence.end():
            self._report(wrong)

    def _report(self, text: str) -> None:
        self._node.report(StoreError.error_code, text, detector="store")
