"""How an executable starts: a signal during the imports, which take seconds, ends it quietly."""

from __future__ import annotations

import importlib
import signal
from types import FrameType
from typing import Any


def start(module: str) -> Any:
    """Import a module and return what its ``main`` returns, the process's exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    return importlib.import_module(module).main()


def _leave(number: int, _: FrameType | None) -> None:
    raise SystemExit(128 + number)
