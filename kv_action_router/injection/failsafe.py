"""Fail-safe: from the last command to a safe value, without a step, for each kind of interface.

effort: gravity compensation, damped toward a velocity that ramps to 0, without stiffness; at rest
it holds the measured pose. Without joint states: gravity and deceleration of the ramp, then
silence, so that the drives' own time-out brakes. Drives that have stopped by themselves are told
nothing until the arm rests and they have had the pause that they want; then it begins as at
activation.
duty: as effort, but 0 for drives that are declared gravity-free.
velocity: ramps to 0 and stays there.
position: decelerates on the path, then slides to the measured pose and holds it; without joint
states it holds where it came to rest.

Zeros are never sent as positions.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.execution_table import Snapshot
from kv_action_router.injection.set_point import SetPoint

_SETTLE_NS = 60_000_000  # an arm that still creeps by then is held where it is
_PAUSES = 2.0  # of the drives' time-out: as long no command goes to drives that have stopped
_STIFFEN = 0.05  # [s] from no stiffness to all of it, once the measured pose is the set-point


class Phase(Enum):
    """Where the fail-safe is."""

    MOVING = 0  # the set-point ramps to rest
    SETTLING = 1  # it rests, the joints not yet
    CAPTURING = 2  # the set-point slides to the measured pose
    HELD = 3
    SILENT = 4  # no command is sent


class FailSafe:
    """Leads the set-point and the law's stiffness through a fail-safe.

    Invariant: while it is in force no command steps: the first equals the last one before, and its
    distance from the fail-safe value goes to 0 on a line.

    Attributes:
        phase: where it is.
        stiffness: share of the position gains, 0 to 1.
        blind: whether there are no joint states.
    """

    def __init__(self, config: InjectionConfig, n: int) -> None:
        self._goes_silent = config.command_interface in ("effort", "duty")
        self._pause_ns = round(_PAUSES * config.drive_timeout * 1e9)
        self._mixes = config.command_interface != "position"
        self._share = config.fail_safe_deceleration
        self._duration = config.fail_safe_duration
        self._n = n
        self._from = [0.0] * n
        self._offset: list[float] | None = None  # of that from the first target
        self._begin_ns = 0
        self._phase_ns = 0
        self._quiet_until_ns = 0  # and until the arm rests; 0 = no pause is due
        self.phase = Phase.SILENT
        self.stiffness = 1.0
        self.blind = False

    @property
    def reached(self) -> bool:
        """Whether the fail-safe value has been reached."""
        return self.phase is Phase.SILENT or (self.phase is Phase.HELD and self.stiffness >= 1.0)

    @property
    def sends(self) -> bool:
        """Whether commands go out."""
        return self.phase is not Phase.SILENT

    @property
    def still(self) -> bool:
        """Whether the arm must stand still although the set-point moves."""
        return self.phase in (Phase.SETTLING, Phase.CAPTURING)

    def begin(
        self,
        now_ns: int,
        command: Sequence[float] | None,
        set_point: SetPoint,
        limits: Snapshot,
        *,
        blind: bool,
    ) -> None:
        """Enter; ``command`` is the last one that was sent, None when there was none."""
        self.blind = blind
        self._begin_ns = self._phase_ns = now_ns
        self._quiet_until_ns = 0
        if command is None:
            self.phase = Phase.SILENT
            self.stiffness = 0.0
            return
        self._from[:] = command
        self._offset = None
        self.phase = Phase.MOVING
        self.stiffness = 0.0 if self._mixes else 1.0
        set_point.brake(self._share, limits)

    def pause(self, now_ns: int) -> None:
        """Say nothing to drives that have stopped by themselves: they want a pause."""
        if self._quiet_until_ns == 0:
            self._quiet_until_ns = now_ns + self._pause_ns
            self.stiffness = 0.0
            self._enter(Phase.SILENT, now_ns)

    def step(
        self,
        now_ns: int,
        set_point: SetPoint,
        position: Sequence[float],
        velocity: Sequence[float],
        limits: Snapshot,
        *,
        blind: bool,
        at_rest: bool,
    ) -> bool:
        """Go on by a tick, before the set-point is advanced.

        Args:
            position: measured [rad] (n,), as old as it may be when ``blind``.
            velocity: measured [rad/s] (n,).
            blind: there are no joint states now.
            at_rest: the measured velocities are at rest.

        Returns:
            True when it started over from the measured state after a silence.
        """
        was_blind, self.blind = self.blind, blind
        if blind:
            done = (now_ns - self._begin_ns) * 1e-9 >= self._duration and set_point.at_rest
            if self._goes_silent and done:
                self._enter(Phase.SILENT, now_ns)
            return False
        if self._quiet_until_ns:
            if now_ns < self._quiet_until_ns or not at_rest:
                return False
            self._quiet_until_ns = 0
        if self.phase is Phase.SILENT:
            # As at activation: whatever was commanded before the silence is forgotten.
            set_point.start(now_ns, position, velocity, limits)
            self._begin_ns = 0
            self.stiffness = 0.0 if self._mixes else 1.0
            self._enter(Phase.MOVING, now_ns)
            return True
        if was_blind and self.phase is Phase.HELD:
            self._enter(Phase.SETTLING, now_ns)
        if self.phase is Phase.MOVING and set_point.at_rest:
            self._enter(Phase.SETTLING, now_ns)
        if self.phase is Phase.SETTLING and (at_rest or now_ns - self._phase_ns > _SETTLE_NS):
            set_point.slide_to(position, limits)
            self._enter(Phase.CAPTURING, now_ns)
        elif self.phase is Phase.CAPTURING and set_point.at_rest:
            self._enter(Phase.HELD, now_ns)
        if self.phase is Phase.HELD and self.stiffness < 1.0:
            self.stiffness = min(1.0, (now_ns - self._phase_ns) * 1e-9 / _STIFFEN)
        return False

    def mix(self, now_ns: int, target: list[float]) -> None:
        """Add to the target what is left of the last command's distance from it (n,).

        The target itself acts at once: an arm that is held back from it would have to catch up,
        and brake harder than planned.
        """
        share = (now_ns - self._begin_ns) * 1e-9 / self._duration
        if share >= 1.0 or not self._mixes:
            return
        offset = self._offset
        if offset is None:
            offset = [last - value for last, value in zip(self._from, target, strict=True)]
            self._offset = offset
        for i in range(self._n):
            target[i] += offset[i] * (1.0 - share)

    def _enter(self, phase: Phase, now_ns: int) -> None:
        if phase is not self.phase:
            self.phase = phase
            self._phase_ns = now_ns
