"""The services of ``cache_manager``: requests in, answers out."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from kv_action_router.caching.invalidation import Cause, Invalidation
from kv_action_router.caching.manager import CacheManager
from kv_action_router.caching.updates import addressed
from kv_action_router.errors import CachingError, RouterError
from kv_action_router.ros import qos, topics
from kv_action_router.ros.conversions.entries import (
    domain_info_to_msg,
    entry_info_to_msg,
    insertion_from_request,
    stored_entry_to_response,
)
from kv_action_router.srv import InvalidateCache, QueryCache

CONDITION_PREFIX = "condition:"  # how reasons begin that the monitor gives
_QUERY_FIELDS = tuple(
    set(QueryCache.Response.get_fields_and_field_types()) - {"success", "message", "miss_reason"}
)


class CacheServices:
    """Offers the cache to people and tools. Belongs to the executor's thread.

    A handler fills in the response and returns its message; what it raises becomes the message of
    an answer without success. So a bad request changes nothing and ends nothing.

    Invariant: the services exist from construction to :meth:`destroy`.
    """

    def __init__(
        self, node: Node, manager: CacheManager, publish_execution_value: Callable[[], None]
    ) -> None:
        """Offer the services.

        Args:
            node: that serves them.
            manager: the cache.
            publish_execution_value: called when the value in force was changed.
        """
        self._node = node
        self._manager = manager
        self._publish_execution_value = publish_execution_value
        self._offered = [
            node.create_service(
                service.type,
                service.name,
                self._answering(handler),
                qos_profile=qos.request(),
            )
            for service, handler in (
                (topics.QUERY, self._query),
                (topics.INSERT_ENTRY, self._insert),
                (topics.GET_ENTRY, self._get),
                (topics.LIST_ENTRIES, self._list_entries),
                (topics.INVALIDATE, self._invalidate),
                (topics.SET_DOMAIN_ISOLATION, self._set_domain_isolation),
                (topics.LIST_DOMAINS, self._list_domains),
                (topics.SAVE, self._save),
            )
        ]

    def destroy(self) -> None:
        """Take the services away."""
        for service in self._offered:
            self._node.destroy_service(service)
        self._offered.clear()

    # --- handlers ---

    def _query(self, request: Any, response: Any) -> str:
        found = self._manager.query(
            request.key, request.domain, request.intent_id, request.subtask, request.scene
        )
        for name in _QUERY_FIELDS:
            setattr(response, name, getattr(found, name))
        response.miss_reason = int(found.miss_reason)
        return found.reason

    def _insert(self, request: Any, response: Any) -> str:
        manager = self._manager
        update = addressed(insertion_from_request(request), manager.domains, manager.encoder_id)
        applied = manager.apply(update)
        response.entry_id = applied.entry_id
        response.entry_version = applied.version
        response.evicted = applied.evicted
        return self._told(applied.message)

    def _get(self, request: Any, response: Any) -> str:
        entry = self._manager.inspector.entry(request.entry_id, request.domain)
        stored_entry_to_response(entry, response)
        return ""

    def _list_entries(self, request: Any, response: Any) -> str:
        infos, remaining = self._manager.inspector.listed(
            request.domain, request.intent_id, request.subtask, request.after, request.limit
        )
        response.entries = [entry_info_to_msg(info) for info in infos]
        response.remaining = remaining
        return ""

    def _invalidate(self, request: Any, response: Any) -> str:
        by_condition = request.reason.lower().startswith(CONDITION_PREFIX)
        response.count = self._manager.invalidate(
            Invalidation(
                scope=request.scope,
                reason=request.reason,
                entry_id=request.entry_id,
                intent_id=request.intent_id,
                layer=request.layer,
                domain=request.domain,
                cause=Cause.CONDITION if by_condition else Cause.REQUEST,
            )
        )
        if request.scope == InvalidateCache.Request.SCOPE_LAYER:
            self._publish_execution_value()
        return self._told(f"{response.count} thrown away: {request.reason.strip()}")

    def _set_domain_isolation(self, request: Any, response: Any) -> str:
        response.grants = self._manager.domains.listed()  # also behind a refusal
        response.grants = self._manager.set_isolation(
            request.owner_domain, request.reader_domain, isolated=request.isolated
        )
        verb = "no longer shared" if request.isolated else "shared"
        return self._told(f"{request.owner_domain!r} is {verb} with {request.reader_domain!r}")

    def _list_domains(self, request: Any, response: Any) -> str:
        response.domains = [domain_info_to_msg(info) for info in self._manager.inspector.domains()]
        response.identity_conflict = self._manager.domains.sharing_refused
        return ""

    def _save(self, request: Any, response: Any) -> str:
        persistence = self._manager.persistence
        response.entries = persistence.save()
        response.path = persistence.report().where
        return self._told(f"{response.entries} entries are on the disk, in {response.path}")

    # --- inside ---

    def _told(self, text: str) -> str:
        """Return what goes into the answer, and into the log, since something was changed."""
        self._node.get_logger().info(text)
        return text

    def _answering(self, handler: Callable[[Any, Any], str]) -> Callable[[Any, Any], Any]:
        def answer(request: Any, response: Any) -> Any:
            try:
                if not self._offered:  # the events executor still calls what was queued
                    raise CachingError(f"{self._node.get_name()} is not configured any more")
                response.message = handler(request, response)
                response.success = True
            except RouterError as error:
                response.success = False
                response.message = str(error)
            except Exception as error:
                response.success = False
                response.message = f"{type(error).__name__}: {error}"
                self._node.get_logger().error(traceback.format_exc())
            return response

        return answer
