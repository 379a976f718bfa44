"""Header stamps that cannot be trusted, and pairs of color and depth images in spite of them.

Ages, control and watchdogs never use a header stamp. It only says which depth image belongs to
which color image, and orders messages for people. So a wrong stamp costs a warning, no more.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

_SAME_CLOCK_NS = 1_000_000_000  # stamps farther apart were made by two clocks


class StampCheck:
    """Judges the stamps of one stream: zero, duplicate, backward, or far from the wall clock."""

    def __init__(self, tolerance: float) -> None:
        """Accept stamps within ``tolerance`` [s] of the wall clock."""
        self._tolerance_ns = int(tolerance * 1e9)
        self._last_ns: int | None = None
        self.ordered = True  # the newest stamp says which image it belongs to

    def check(self, stamp_ns: int, wall_ns: int) -> str:
        """Return what is wrong with a stamp, or an empty string.

        A backward step starts a new window: the stamps after it are judged against it.
        """
        last, self._last_ns = self._last_ns, stamp_ns
        self.ordered = stamp_ns != 0 and (last is None or stamp_ns > last)
        if stamp_ns == 0:
            return "stamp is zero"
        if last is not None and stamp_ns == last:
            return "stamp is the same as before"
        if last is not None and stamp_ns < last:
            return f"stamp went back by {(last - stamp_ns) * 1e-9:.3f} s"
        offset = stamp_ns - wall_ns
        if abs(offset) > self._tolerance_ns:
            return f"stamp is {offset * 1e-9:+.3f} s from the wall clock"
        return ""


@dataclass(frozen=True, slots=True)
class Frame:
    """One image as it came: ``image`` is whatever the caller decodes later.

    Attributes:
        image: the message.
        stamp_ns: header stamp [ns].
        time_ns: the same for the key's header: the receipt where the stamp cannot be trusted [ns].
        receipt_ns: CLOCK_MONOTONIC of the receipt [ns].
        origin_ns: CLOCK_MONOTONIC at its source [ns].
        ordered: the stamp is not zero, duplicate or backward.
    """

    image: Any
    stamp_ns: int
    time_ns: int
    receipt_ns: int
    origin_ns: int
    ordered: bool


class ImagePairer:
    """Pairs the newest color image with its depth image, by stamp or, failing that, by receipt.

    Invariant: a color image is handed out once, a depth image never to two color images.
    """

    def __init__(self, stamp_tolerance: float, receipt_tolerance: float) -> None:
        """Pair images whose stamps, or receipts, are no farther apart than this [s]."""
        self._stamp_ns = int(stamp_tolerance * 1e9)
        self._receipt_ns = int(receipt_tolerance * 1e9)
        self._depths: deque[Frame] = deque(maxlen=4)
        self._color: Frame | None = None
        self.unpaired = 0  # color images in a row that were given up before their depth came

    def add_depth(self, frame: Frame) -> None:
        """Take in a depth image."""
        self._depths.append(frame)

    def add_color(self, frame: Frame) -> None:
        """Take in a color image; one that still waits is given up."""
        if self._color is not None:
            self.unpaired += 1
        self._color = frame

    def take(self) -> tuple[Frame, Frame] | None:
        """Return the color image that waits and its depth image, or None."""
        color = self._color
        if color is None:
            return None
        best: Frame | None = None
        best_distance = 0
        for depth in self._depths:
            apart = abs(depth.stamp_ns - color.stamp_ns)
            if color.ordered and depth.ordered and apart < _SAME_CLOCK_NS:
                limit = self._stamp_ns
            else:
                apart, limit = (
                    abs(depth.receipt_ns - color.receipt_ns),
                    self._receipt_ns,
                )
            if apart <= limit and (best is None or apart <= best_distance):
                best, best_distance = depth, apart
        if best is None:
            return None
        while self._depths.popleft() is not best:
            pass  # older ones have lost their chance too
        self._color = None
        self.unpaired = 0
        return color, best
