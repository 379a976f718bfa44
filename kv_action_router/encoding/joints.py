"""Joint states that arrive in parts and in any order, merged by name.

Drivers publish arm, gripper and wheels apart, name joints in their own order, and leave out or
NaN-fill what they do not measure. Here every joint keeps its newest value with its age.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray, JointSample
from kv_action_router.errors import InputError, MissingJointsError

_DIFFERENCE_NS = 50_000_000  # a velocity is estimated from two positions no farther apart than this


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
        self._position = np.full(n, np.nan)
        self._velocity = np.full(n, np.nan)
        self._effort = np.full(n, np.nan)
        self._measured = np.zeros(n, dtype=bool)
        self._receipt: npt.NDArray[np.int64] = np.zeros(n, dtype=np.int64)
        self._stamp_ns = 0
        self._orders: dict[tuple[str, ...], tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]] = {}

    def update(
        self,
        names: Sequence[str],
        position: Sequence[float] | FloatArray,
        velocity: Sequence[float] | FloatArray,
        effort: Sequence[float] | FloatArray,
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
        there, here = self._order(tuple(names))
        if len(position) == 0 or len(here) == 0:
            return False
        count = len(names)
        values = _checked("position", position, count)[there]
        if not np.isfinite(values).all():
            worst = int(np.flatnonzero(~np.isfinite(values))[0])
            joint = self.names[here[worst]]
            raise InputError(f"position of {joint}", "finite", float(values[worst]))
        speeds = _part("velocity", velocity, count, there)
        efforts = _part("effort", effort, count, there)
        measured = np.isfinite(speeds)
        if not measured.all():
            speeds = np.where(measured, speeds, self._difference(values, here, receipt_ns))
        self._measured[here] = measured
        self._velocity[here] = speeds
        self._position[here] = values
        self._effort[here] = np.where(np.isfinite(efforts), efforts, np.nan)
        self._receipt[here] = receipt_ns
        self._stamp_ns = stamp_ns
        return True

    def missing(self, now_ns: int) -> tuple[str, ...]:
        """Return the required joints that were never seen, or not within the timeout."""
        late = (self._receipt == 0) | (now_ns - self._receipt > self._timeout_ns)
        if not late.any():
            return ()
        return tuple(name for name, flag in zip(self.names, late, strict=True) if flag)

    def sample(self, now_ns: int) -> JointSample:
        """Return the merged state; its receipt is that of the newest part.

        Raises:
            MissingJointsError: naming the joints that are missing.
        """
        missing = self.missing(now_ns)
        if missing:
            raise MissingJointsError(
                f"no joint state within {self._timeout_ns / 1e9:g} s for {', '.join(missing)}"
            )
        return JointSample(
            self.names,
            self._position.copy(),
            self._velocity.copy(),
            self._effort.copy(),
            int(self._receipt.max()),
            self._stamp_ns,
        )

    def age(self, now_ns: int) -> float:
        """Return the age of the oldest part [s]: one fresh joint does not hide a late one."""
        return (now_ns - int(self._receipt.min())) * 1e-9

    @property
    def position(self) -> FloatArray:
        """Newest positions [rad] (n,), NaN where never seen; overwritten by the next update."""
        return self._position

    @property
    def velocity_estimated(self) -> bool:
        """Whether a joint that was seen has a velocity that is only a difference of positions."""
        return bool(((self._receipt > 0) & ~self._measured).any())

    @property
    def velocity_measured(self) -> npt.NDArray[np.bool_]:
        """Which joints' velocity is measured rather than a difference of positions (n,)."""
        return self._measured

    def _difference(
        self, values: FloatArray, here: npt.NDArray[np.intp], receipt_ns: int
    ) -> FloatArray:
        elapsed = receipt_ns - self._receipt[here]
        usable = (self._receipt[here] > 0) & (elapsed > 0) & (elapsed <= _DIFFERENCE_NS)
        speed = np.zeros(len(values))
        np.divide(values - self._position[here], elapsed * 1e-9, out=speed, where=usable)
        return speed

    def _order(self, names: tuple[str, ...]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        known = self._orders.get(names)
        if known is not None:
            return known
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError("joint names", f"without repetition of {twice}", names)
        there = np.array([i for i, name in enumerate(names) if name in self._index], dtype=np.intp)
        here = np.array([self._index[names[i]] for i in there], dtype=np.intp)
        if len(self._orders) < 64:  # a publisher that invents names must not grow this for ever
            self._orders[names] = (there, here)
        return there, here


def _checked(field: str, values: Sequence[float] | FloatArray, count: int) -> FloatArray:
    array = np.asarray(values, dtype=float)
    if array.shape != (count,):
        raise InputError(f"size of {field}", f"{count} as the names", array.size)
    return array


def _part(
    field: str,
    values: Sequence[float] | FloatArray,
    count: int,
    there: npt.NDArray[np.intp],
) -> FloatArray:
    if len(values) == 0:
        return np.full(len(there), np.nan)
    return _checked(field, values, count)[there]
