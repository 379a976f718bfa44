"""Timed outputs beside the motion (horn, gripper, io): fired once, at their time."""

from __future__ import annotations

from collections import deque

from kv_action_router.contracts import AuxiliaryOutput, TrajectoryChunk

_SAME_NS = 1_000_000  # two outputs of one name nearer than this are the same one


class AuxiliarySchedule:
    """Outputs that are still to come.

    Invariant: an output that several chunks of one motion carry is fired once. Chunks replace what
    is still due, since each carries all outputs of its own span.

    Attributes:
        waiting: whether there are any.
    """

    def __init__(self) -> None:
        self._due: list[tuple[int, AuxiliaryOutput]] = []
        self._fired: deque[tuple[int, str]] = deque(maxlen=32)
        self.waiting = False

    def adopt(self, chunk: TrajectoryChunk) -> None:
        """Take the outputs of a chunk in place of those that are due."""
        if not chunk.auxiliary and not self._due:
            return
        due = []
        for output in chunk.auxiliary:
            at = chunk.anchor_ns + round(output.time * 1e9)
            if not any(name == output.name and abs(at - t) < _SAME_NS for t, name in self._fired):
                due.append((at, output))
        self._due = sorted(due, key=lambda item: item[0])
        self.waiting = bool(due)

    def clear(self) -> None:
        """Drop what is due: a stopped motion fires nothing."""
        self._due.clear()
        self.waiting = False

    def fire(self, now_ns: int) -> list[AuxiliaryOutput]:
        """Return what is due by now."""
        fired = []
        while self._due and self._due[0][0] <= now_ns:
            at, output = self._due.pop(0)
            self._fired.append((at, output.name))
            fired.append(output)
        self.waiting = bool(self._due)
        return fired
