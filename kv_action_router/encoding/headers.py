"""The decision header of each key: what is known of the task, and the sample behind the key."""

from __future__ import annotations

from dataclasses import replace

from kv_action_router.contracts import Decision, TaskState
from kv_action_router.encoding.config import EncoderConfig


class Headers:
    """Makes headers with a running sequence and trace id. Used by one thread.

    Invariant: the epoch that a task state brings never replaces a later one.
    """

    def __init__(self, config: EncoderConfig, encoder_id: str, first_trace_id: int) -> None:
        """Start without a task; the first header's trace id follows ``first_trace_id``."""
        self._scene = config.scene
        self._task_scene = ""
        self._domain = config.domain_name
        self._known = Decision(
            domain=config.domain_name,
            source_domain=config.domain_name,
            robot_id=config.identity,
            encoder_id=encoder_id,
            scene=config.scene,
            frame_id=config.base_frame,
        )
        self._first_trace_id = first_trace_id
        self._sequence = 0

    @property
    def epoch(self) -> int:
        """The injector's epoch that the headers carry."""
        return self._known.epoch

    def on_task(self, state: TaskState) -> None:
        """Take over the active intent, the decision that is asked for, and where it is made."""
        domain = state.decision.domain or self._domain
        self._task_scene = state.decision.scene
        self._known = replace(
            self._known,
            domain=domain,
            source_domain=domain,
            scene=state.decision.scene or self._scene,
            intent_id=state.decision.intent_id,
            decision_id=state.decision.decision_id,
            epoch=max(self._known.epoch, state.decision.epoch),
        )

    def on_scene(self, scene: str) -> None:
        """Take over where the robot is; a task that names its scene goes before."""
        if scene != self._scene:
            self._scene = scene
            self._known = replace(self._known, scene=self._task_scene or scene)

    def on_epoch(self, epoch: int) -> None:
        """Take over the injector's epoch."""
        if epoch != self._known.epoch:
            self._known = replace(self._known, epoch=epoch)

    def next(self, receipt_ns: int, origin_ns: int, stamp_ns: int) -> Decision:
        """Return the header of the next key, from times of the sample that triggers it.

        Args:
            receipt_ns: CLOCK_MONOTONIC at its receipt [ns].
            origin_ns: CLOCK_MONOTONIC at its source [ns].
            stamp_ns: header stamp [ns].
        """
        self._sequence += 1
        known = self._known
        return known.numbered(
            trace_id=self._first_trace_id + self._sequence,
            trigger_monotonic_ns=receipt_ns,
            stage_ns=(origin_ns, 0, 0, 0, 0),
            sequence=self._sequence,
            epoch=known.epoch,
            decision_id=known.decision_id,
            stamp_ns=stamp_ns,
        )
