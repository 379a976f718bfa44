"""Which writers should be at work now: a stream that may be silent has no deadline to miss."""

from __future__ import annotations

from collections.abc import Callable, Mapping

TASK_KEY = "task_key"
CACHE_MATCH = "cache_match"
TRAJECTORY_CHUNK = "trajectory_chunk"
EXECUTION_FEEDBACK = "execution_feedback"

# topic -> nodes that must all be active for its writer to be at work
PRODUCERS: dict[str, tuple[str, ...]] = {
    TASK_KEY: ("task_key_encoder",),
    CACHE_MATCH: ("task_key_encoder", "cache_manager"),
    TRAJECTORY_CHUNK: ("task_key_encoder", "cache_manager", "behavior_synthesizer"),
    EXECUTION_FEEDBACK: ("actuator_injector",),
}


class Expectation:
    """Answers for each topic whether its writer should be at work.

    Chunks are made only while a task runs and its decision is answered; the other streams flow
    while the nodes behind them are active.
    """

    def __init__(
        self,
        is_active: Callable[[str], bool],
        motion_in_force: Callable[[], bool],
        producers: Mapping[str, tuple[str, ...]],
    ) -> None:
        self._is_active = is_active
        self._motion_in_force = motion_in_force
        self._producers = dict(producers)

    def __call__(self, topic: str) -> bool:
        """Return whether the topic's writer should be at work now."""
        producers = self._producers.get(topic)
        if producers is None:
            return False
        for node in producers:
            if not self._is_active(node):
                return False
        return topic != TRAJECTORY_CHUNK or self._motion_in_force()
