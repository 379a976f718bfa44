"""Joint states as they come in: merged by name, checked, velocities filled in."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kv_action_router.injection.robot import JointModel
from kv_action_router.injection.sample_age import SampleAge

_LAYOUTS = 16  # different sets of joint names that are remembered
_JUMP = 0.02  # [rad] position step that is always believed
_JUMP_SPEED = 2.0  # ... plus this many times the velocity limit x elapsed time
_IMPLAUSIBLE_SPEED = 4.0  # a velocity above this many times its limit counts as not measured


class JointTracker:
    """Newest measured state of n joints, in the model's order.

    Invariant: positions and velocities are finite once ``complete``; a sample that is refused
    changes nothing but ``refused`` and ``refusal``.

    Attributes:
        position: [rad] (n,).
        velocity: [rad/s] (n,), measured or differentiated.
        effort: [N m] (n,), NaN = not measured.
        refused: samples that were not used.
        refusal: why the last one was not; empty after a good one.
    """

    def __init__(self, model: JointModel, velocity_filter: float, delay_limit_ns: int = 0) -> None:
        """Prepare.

        Args:
            model: names and limits of the joints.
            velocity_filter: time constant of velocities that are differentiated [s].
            delay_limit_ns: samples that are held up for longer are refused [ns]; 0 = none.
        """
        self.names = model.joint_names
        n = len(self.names)
        self._n = n
        self._limit: list[float] = model.velocity_limit.tolist()
        self._filter = velocity_filter
        self.continuous: list[bool] = model.continuous.tolist()
        self._jump_speed = _JUMP_SPEED * min(self._limit)  # strictest of all joints
        self._plausible = _IMPLAUSIBLE_SPEED * min(self._limit)
        self._not_measured = [math.nan] * n
        self._delay_limit_ns = delay_limit_ns
        self._layouts: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        self._ages: dict[tuple[str, ...], SampleAge] = {}  # each set of joints has its own writer
        self._names: Sequence[str] | None = None  # of the last sample; their layout and age
        self._layout: list[tuple[int, int]] = []
        self._age = SampleAge(delay_limit_ns)
        self._whole: list[tuple[int, int]] | None = None  # the layout that is our own order
        # When each joint was heard of last. While samples of all joints come, the two lists are
        # out of date and the three numbers serve.
        self._uniform = False
        self._stamps_ns = [0] * n
        self._receipts_ns = [0] * n
        self._oldest_ns = self._newest_ns = 0
        self._stamp_ns = 0  # of the first joint
        self.position = [0.0] * n
        self.velocity = [0.0] * n
        self.effort = [math.nan] * n
        self.complete = False
        self.refused = 0
        self.refusal = ""

    def reset(self) -> None:
        """Forget everything that was measured."""
        self._note(0, 0)
        for index in range(self._n):
            self.velocity[index] = 0.0
        for age in self._ages.values():
            age.reset()
        self.complete = False

    def missing(self) -> list[str]:
        """Return the joints that were never seen."""
        self._spread()
        return [name for name, at in zip(self.names, self._receipts_ns, strict=True) if at == 0]

    def update(
        self,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
        stamp_ns: int,
        receipt_ns: int,
    ) -> bool:
        """Take one joint state; return whether it was used.

        Args:
            names: joints in the message's own order; unknown ones are ignored.
            position: [rad], one a name.
            velocity: [rad/s], one a name, or empty; NaN = not measured.
            effort: [N m], likewise.
            stamp_ns: header stamp [ns]; 0 = none.
            receipt_ns: CLOCK_MONOTONIC of the receipt [ns].
        """
        if names is not self._names:
            self._recognize(names)
        layout = self._layout
        if layout and (fault := self._age.check(stamp_ns, receipt_ns)):
            return self._refuse(fault)
        if layout is self._whole and self.complete:
            # The same rules as below, with bounds for all joints at once that are stricter than
            # each joint's own: what is above any doubt needs no loop.
            elapsed = (receipt_ns - self._newest_ns) * 1e-9
            if (
                elapsed > 0.0
                and stamp_ns != self._stamp_ns
                and len(position) == len(velocity) == self._n
                and math.dist(position, self.position) <= _JUMP + self._jump_speed * elapsed
                and math.hypot(*velocity) <= self._plausible
            ):
                self.position[:] = position
                self.velocity[:] = velocity
                self.effort[:] = effort if len(effort) == self._n else self._not_measured
                self._note(stamp_ns, receipt_ns)
                self.refusal = ""
                return True
        if not layout:
            return False  # another device's joints: no fault
        if len(position) != len(names):
            return self._refuse(f"{len(position)} positions for {len(names)} joints")
        self._spread()
        if not self._acceptable(layout, position, stamp_ns, receipt_ns):
            return False
        has_velocity = len(velocity) == len(names)
        has_effort = len(effort) == len(names)
        for source, i in layout:
            value = position[source]
            speed = velocity[source] if has_velocity else math.nan
            bound = _IMPLAUSIBLE_SPEED * self._limit[i]
            if not -bound <= speed <= bound:
                speed = self._differentiate(i, value, stamp_ns, receipt_ns)
            self.velocity[i] = speed
            self.position[i] = value
            self.effort[i] = effort[source] if has_effort else math.nan
            self._receipts_ns[i] = receipt_ns
            self._stamps_ns[i] = stamp_ns
        self._oldest_ns, self._newest_ns = min(self._receipts_ns), max(self._receipts_ns)
        self._stamp_ns = self._stamps_ns[0]
        self.complete = self._oldest_ns > 0
        self.refusal = ""
        return True

    def _note(self, stamp_ns: int, receipt_ns: int) -> None:
        """All joints were heard of at the same time."""
        self._uniform = True
        self._stamp_ns = stamp_ns
        self._oldest_ns = self._newest_ns = receipt_ns

    def _spread(self) -> None:
        """Bring the times of each joint up to date."""
        if self._uniform:
            self._uniform = False
            self._stamps_ns[:] = [self._stamp_ns] * self._n
            self._receipts_ns[:] = [self._oldest_ns] * self._n

    def oldest_ns(self) -> int:
        """Return the receipt of the joint that was heard of longest ago [ns]; 0 = not complete."""
        return self._oldest_ns

    def at_rest(self, limit: float) -> bool:
        """Return whether no joint is faster than ``limit`` [rad/s]."""
        return all(-limit <= speed <= limit for speed in self.velocity)

    @staticmethod
    def shortest_turn(angle: float) -> float:
        """Return an angle without its whole turns, -pi to pi [rad]."""
        return math.remainder(angle, 2.0 * math.pi)

    def _acceptable(
        self,
        layout: list[tuple[int, int]],
        position: Sequence[float],
        stamp_ns: int,
        receipt_ns: int,
    ) -> bool:
        frozen = stamp_ns != 0
        for source, i in layout:
            value = position[source]
            seen = self._receipts_ns[i]
            if seen == 0:
                frozen = False
                if not -math.inf < value < math.inf:
                    return self._refuse(f"position of {self.names[i]} is {value}")
                continue
            elapsed = (receipt_ns - seen) * 1e-9
            if elapsed <= 0.0:
                return self._refuse(f"{self.names[i]}: no time passed since the last sample")
            step = value - self.position[i]
            bound = _JUMP + _JUMP_SPEED * self._limit[i] * elapsed
            if not -bound <= step <= bound:
                if step != step or step in (math.inf, -math.inf):
                    return self._refuse(f"position of {self.names[i]} is {value}")
                return self._refuse(f"{self.names[i]} jumped by {step:.3f} rad in {elapsed:.4f} s")
            if frozen and (step != 0.0 or stamp_ns != self._stamps_ns[i]):
                frozen = False
        if frozen:
            return self._refuse("the same stamp and positions again")
        return True

    def _differentiate(self, i: int, position: float, stamp_ns: int, receipt_ns: int) -> float:
        seen = self._receipts_ns[i]
        if seen == 0:
            return 0.0
        dt = (receipt_ns - seen) * 1e-9
        stamped = (stamp_ns - self._stamps_ns[i]) * 1e-9
        if self._stamps_ns[i] != 0 and 0.2 * dt < stamped < 5.0 * dt + 0.01:
            dt = stamped  # the sensor's own clock jitters less than the receipt
        raw = (position - self.position[i]) / dt
        return self.velocity[i] + (raw - self.velocity[i]) * dt / (dt + self._filter)

    def _recognize(self, names: Sequence[str]) -> None:
        whole = tuple(names)
        layout = self._layouts.get(whole)
        self._layout = self._learn(whole) if layout is None else layout
        self._age = self._ages[whole]
        self._names = names if names is whole else None  # a list may change its contents

    def _learn(self, names: tuple[str, ...]) -> list[tuple[int, int]]:
        if len(self._layouts) >= _LAYOUTS:
            self._layouts.clear()
            self._ages.clear()
            self._whole = None
        layout = [(names.index(name), i) for i, name in enumerate(self.names) if name in names]
        if len(set(names)) != len(names):
            self._refuse("a joint is named twice")
            layout = []
        self._layouts[names] = layout
        self._ages[names] = SampleAge(self._delay_limit_ns)
        if names == self.names:
            self._whole = layout
        return layout

    def _refuse(self, reason: str) -> bool:
        self.refused += 1
        self.refusal = reason
        return False
