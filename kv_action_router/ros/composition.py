"""The four soft stages in one process, under one executor.

The injector stays alone: its process has its own scheduling, and nothing may hold its interpreter.
"""

from __future__ import annotations

from kv_action_router.caching.node import CacheManagerNode
from kv_action_router.encoding.node import TaskKeyEncoder
from kv_action_router.monitoring.node import FailureMonitorNode
from kv_action_router.ros.process import run
from kv_action_router.synthesis.node import BehaviorSynthesizerNode


def main() -> int:
    """Run encoder, cache manager, synthesizer and monitor."""
    return run(
        lambda: [
            TaskKeyEncoder(),
            CacheManagerNode(),
            BehaviorSynthesizerNode(),
            FailureMonitorNode(),
        ]
    )
