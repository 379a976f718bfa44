"""Which index a cache gets."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial

from kv_action_router.caching.config import CachingConfig
from kv_action_router.caching.index.base import KeyIndex
from kv_action_router.caching.index.exact import ExactIndex
from kv_action_router.errors import ConfigError

EXACT_LIMIT = 100_000  # entries: a match takes some 3 ms there, and grows with them
INSTALL = "python3 -m pip install usearch"
_MORE = 12  # rows beyond the candidates: the runner-up, and rows withdrawn during the search


def index_of(config: CachingConfig) -> Callable[[int], KeyIndex]:
    """Return what makes the index of a cache of that configuration, from a number of rows.

    Raises:
        ConfigError: it asks for the vector index, whose library is not installed.
    """
    beyond = config.index == "auto" and config.capacity > EXACT_LIMIT
    if config.index == "exact" or (config.index == "auto" and not beyond):
        return ExactIndex
    if importlib.util.find_spec("usearch") is None:
        without = f"without the package usearch, which `{INSTALL}` installs"
        if beyond:
            raise ConfigError("capacity", f"at most {EXACT_LIMIT} {without}", config.capacity)
        raise ConfigError("index", f"auto or exact {without}", config.index)
    from kv_action_router.caching.index.vector import VectorIndex

    return partial(VectorIndex, answers=config.candidates + _MORE)
