"""Vision: how old the images are that decisions are made from, and what they no longer show."""

from __future__ import annotations

import math

from kv_action_router.monitoring.samples import KeySample
from kv_action_router.monitoring.signals import SignalTable
from kv_action_router.tasks.signals import SHARPNESS


class VisionDetector:
    """Writes ``image_age``, ``target_age`` and ``key_age`` [s], and ``odometry_confidence``.

    The ages go on growing while no key comes, so silence shows as age. Before the first key they
    are not measured; that nobody publishes keys is the heartbeat's to tell. ``target_age`` is
    measured while a stage acts on a target that it may not touch yet: the tool that is about to
    touch hides what it touches. The confidence is the encoder's own, and so is ``image_sharpness``.
    """

    def __init__(self) -> None:
        self._key: KeySample | None = None
        self._looks = False

    def reset(self) -> None:
        """Forget the newest key, and the task."""
        self._key = None
        self._looks = False

    def on_task(self, *, looks: bool) -> None:
        """Take whether the stage under way has to see its target."""
        self._looks = looks

    def on_key(self, sample: KeySample, table: SignalTable) -> None:
        """Take what the newest key says."""
        self._key = sample
        table.put("odometry_confidence", sample.odometry_confidence, sample.receipt_ns)
        table.put(SHARPNESS, sample.image_sharpness, sample.receipt_ns)

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Write the ages as they are now."""
        key = self._key
        if key is None:
            return
        key_age = max(0, now_ns - key.receipt_ns) / 1e9
        table.put("key_age", key_age, now_ns)
        table.put("image_age", key.image_age + key_age, now_ns)
        table.put("target_age", key.target_age + key_age if self._looks else math.nan, now_ns)
