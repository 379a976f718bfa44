"""Joint states that arrive in parts and in any order, merged by name.

Drivers publish arm, gripper and wheels apart, name joints in their own order, and leave out or
NaN-fill what they do not measure. Here every joint keeps its newest value with its age.

The state is kept in lists: for a dozen joints plain numbers cost less than small arrays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray, JointSample
from kv_action_router.errors import InputError, MissingJointsError

_DIFFERENCE_NS = 50_000_000  # a velocity is estimated from two positions no farther apart than this

_Numbers = Sequence[float] | FloatArray
_Order = tuple[list[int], list[int]]  # places in the message, and those of the same joints here


class JointMerger:
    """Newest state of the required joints.

    Invariant: a position that was taken in is finite; the age of a joint is that of its own newest
    part. Where a driver measures no velocity it is the difference of two positions, and
    ``velocity_measured`` says so.
    """

    def __init__(self, required: Sequence[str], timeout: float) -> None:
        """Merge these joints; one that is older than ``timeout`` [s] counts as missing.

        Raises:
            InputError: no joint, or one twice.
        """
        if not required or len(set(required)) != len(required):
            raise InputError("required joints", "at least one, each once", tuple(required))
        self.names = tuple(required)
        self._timeout_ns = int(timeout * 1e9)
        n = len(self.names)
        self._index = {name: index for index, name in enumerate(self.names)}
        self._position = [math.nan] * n
        self._velocity = [math.nan] * n
        self._effort = [math.nan] * n
        self._measured = [False] * n
        self._receipt = [0] * n
        self._stamp_ns = 0
        self._all = list(range(n))
        self._sample: JointSample | None = None  # of the present state, once it was asked for
        self._orders: dict[tuple[str, ...], _Order] = {}
        self._last_names: tuple[str, ...] = ()
        self._last_order: _Order = ([], [])

    def update(
        self,
        names: Sequence[str],
        position: _Numbers,
        velocity: _Numbers,
        effort: _Numbers,
        stamp_ns: int,
        receipt_ns: int,
    ) -> bool:
        """Take in one message; return whether it held any of the required joints.

        Args:
            names: joints of the message, in its own order.
            position: [rad], one a name; empty = a message without positions, ignored.
            velocity: [rad/s], one a name, or empty; NaN = not measured.
            effort: [N m], one a name, or empty; NaN = not measured.
            stamp_ns: header stamp [ns].
            receipt_ns: CLOCK_MONOTONIC of the receipt [ns].

        Raises:
            InputError: a name twice, a size that does not fit, or a position that is not finite;
                nothing of the message is taken in.
        """
        names = tuple(names)
        if names != self._last_names:  # a driver's messages have the same names, nearly always
            self._last_order = self._order(names)
            self._last_names = names
        there, here = self._last_order
        if len(position) == 0 or not here:
            return False
        count = len(names)
        values = _picked("position", position, count, there)
        # a sum is finite only where all its terms are
        if not math.isfinite(sum(values)):
            self._refuse_not_finite(values, here)
        speeds = _picked("velocity", velocity, count, there)
        efforts = _picked("effort", effort, count, there)
        if math.isfinite(sum(speeds)):
            if False in self._measured:
                for joint in here:
                    self._measured[joint] = True
        else:
            self._estimate_missing(speeds, values, here, receipt_ns)
        if not math.isfinite(sum(efforts)):
            efforts = [value if math.isfinite(value) else math.nan for value in efforts]
        if here == self._all:
            self._position, self._velocity, self._effort = values, speeds, efforts
            self._receipt = [receipt_ns] * len(here)
        else:
            for joint, value, speed, load in zip(here, values, speeds, efforts, strict=True):
                self._position[joint] = value
                self._velocity[joint] = speed
                self._effort[joint] = load
                self._receipt[joint] = receipt_ns
        self._stamp_ns = stamp_ns
        self._sample = None
        return True

    def missing(self, now_ns: int) -> tuple[str, ...]:
        """Return the required joints that were never seen, or not within the timeout."""
        oldest = min(self._receipt)
        if oldest != 0 and now_ns - oldest <= self._timeout_ns:
            return ()
        return tuple(
            name
            for name, receipt in zip(self.names, self._receipt, strict=True)
            if receipt == 0 or now_ns - receipt > self._timeout_ns
        )

    def sample(self, now_ns: int) -> JointSample:
        """Return the merged state; its receipt is that of the newest part.

        Until the next update it is the same object.

        Raises:
            MissingJointsError: naming the joints that are missing.
        """
        missing = self.missing(now_ns)
        if missing:
            raise MissingJointsError(
                f"no joint state within {self._timeout_ns / 1e9:g} s for {', '.join(missing)}"
            )
        if self._sample is None:
            self._sample = JointSample(
                self.names,
                np.array(self._position, dtype=float),
                np.array(self._velocity, dtype=float),
                np.array(self._effort, dtype=float),
                max(self._receipt),
                self._stamp_ns,
            )
        return self._sample

    def age(self, now_ns: int) -> float:
        """Return the age of the oldest part [s]: one fresh joint does not hide a late one."""
        return (now_ns - min(self._receipt)) * 1e-9

    @property
    def velocity_estimated(self) -> bool:
        """Whether a joint that was seen has a velocity that is only a difference of positions."""
        return False in self._measured and any(
            receipt > 0 and not measured
            for receipt, measured in zip(self._receipt, self._measured, strict=True)
        )

    @property
    def velocity_measured(self) -> npt.NDArray[np.bool_]:
        """Which joints' velocity is measured rather than a difference of positions (n,)."""
        return np.array(self._measured)

    def _refuse_not_finite(self, values: list[float], here: list[int]) -> None:
        for joint, value in zip(here, values, strict=True):
            if not math.isfinite(value):
                raise InputError(f"position of {self.names[joint]}", "finite", value)

    def _estimate_missing(
        self, speeds: list[float], values: list[float], here: list[int], receipt_ns: int
    ) -> None:
        """Replace, in place, speeds that were not measured; zero where there is no base for one."""
        for place, joint in enumerate(here):
            self._measured[joint] = measured = math.isfinite(speeds[place])
            if measured:
                continue
            last_ns = self._receipt[joint]
            elapsed = receipt_ns - last_ns
            usable = last_ns > 0 and 0 < elapsed <= _DIFFERENCE_NS
            moved = values[place] - self._position[joint]
            speeds[place] = moved / (elapsed * 1e-9) if usable else 0.0

    def _order(self, names: tuple[str, ...]) -> _Order:
        known = self._orders.get(names)
        if known is not None:
            return known
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError("joint names", f"without repetition of {twice}", names)
        there = [place for place, name in enumerate(names) if name in self._index]
        here = [self._index[names[place]] for place in there]
        if len(self._orders) < 64:  # a publisher that invents names must not grow this for ever
            self._orders[names] = (there, here)
        return there, here


def _picked(field: str, values: _Numbers, count: int, there: list[int]) -> list[float]:
    """Return the values at these places; NaN where the message has none at all."""
    if len(values) == 0:
        return [math.nan] * len(there)
    if isinstance(values, np.ndarray):
        listed, fits = values.tolist(), values.shape == (count,)
    else:
        listed = [float(value) for value in values]
        fits = len(listed) == count
    if not fits:
        raise InputError(f"size of {field}", f"{count} as the names", np.size(values))
    if len(there) == count:  # all of them, in their order
        return listed
    return [listed[place] for place in there]
