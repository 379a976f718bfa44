"""Vision: how old the image is that decisions are made from."""

from __future__ import annotations

from kv_action_router.monitoring.samples import KeySample
from kv_action_router.monitoring.signals import SignalTable


class ImageAgeDetector:
    """Writes ``image_age`` and ``key_age`` [s].

    Both go on growing while no key comes, so silence shows as age. Before the first key they are
    not measured; that nobody publishes keys is the heartbeat's to tell.
    """

    def __init__(self) -> None:
        self._key: KeySample | None = None

    def reset(self) -> None:
        """Forget the newest key."""
        self._key = None

    def on_key(self, sample: KeySample) -> None:
        """Take what the newest key says."""
        self._key = sample

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Write both ages as they are now."""
        if self._key is None:
            return
        key_age = max(0, now_ns - self._key.receipt_ns) / 1e9
        table.put("key_age", key_age, now_ns)
        table.put("image_age", self._key.image_age + key_age, now_ns)
