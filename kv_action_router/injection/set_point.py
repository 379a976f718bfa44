"""The injector's own set-point: holds, follows a chunk, ramps to rest, slides to a measured pose.

It only ever moves from where it is: position and velocity are continuous through every change of
the path, and no tick exceeds v_max dt and a_max dt. A path that would is left, by a ramp; nothing
is clipped silently.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

from kv_action_router.injection.blend import OffsetBlend, shortest_duration
from kv_action_router.injection.chunk_player import ChunkPlayer
from kv_action_router.injection.chunk_table import ChunkTable
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.execution_table import Snapshot
from kv_action_router.injection.ramp import Ramp
from kv_action_router.injection.robot import JointModel

_STEP_SLACK = 1.02
_POSITION_SLACK = 1e-9  # [rad]
_VELOCITY_SLACK = 1e-5  # [rad/s]


class Path(Enum):
    """What the set-point follows."""

    HOLD = 0
    CHUNK = 1
    RAMP = 2


_CHUNK, _RAMP = Path.CHUNK, Path.RAMP


class SetPoint:
    """Set-point of n joints.

    Invariant: ``position``, ``velocity`` and ``acceleration`` are finite; between two calls of
    :meth:`advance` that are dt apart they move by at most v_max dt and a_max dt.

    Attributes:
        position: [rad] (n,).
        velocity: [rad/s] (n,).
        acceleration: [rad/s^2] (n,).
        path: what is followed.
        left_path: times that a path was left since it broke the limits of a tick.
    """

    def __init__(self, model: JointModel, config: InjectionConfig) -> None:
        n = len(model.joint_names)
        self._n = n
        self._model = model
        self._config = config
        self._lower: list[float] = model.lower.tolist()
        self._upper: list[float] = model.upper.tolist()
        self.position = [0.0] * n
        self.velocity = [0.0] * n
        self.acceleration = [0.0] * n
        self.path = Path.HOLD
        self.left_path = 0
        self.last_ns = 0
        self._zero = (0.0,) * n
        self._hold = [0.0] * n
        self._player = ChunkPlayer(model)
        self._ramp = Ramp(n)
        self._ramp_share = 0.0
        self._offset = OffsetBlend(n)
        self._next = ([0.0] * n, [0.0] * n, [0.0] * n)
        # what :meth:`withdraw` goes back to
        self._old_path = Path.HOLD
        self._old_state = ([0.0] * n, [0.0] * n, [0.0] * n)
        self._old_ns = 0
        self._old_player = ChunkPlayer(model)
        self._old_offset = OffsetBlend(n)
        self._candidate = ChunkPlayer(model)

    @property
    def table(self) -> ChunkTable | None:
        """The chunk that is followed, or None."""
        return self._player.table if self.path is Path.CHUNK else None

    @property
    def at_rest(self) -> bool:
        """Whether the set-point stands still and will go on doing so."""
        return self.path is Path.HOLD and not self._offset.active(self.last_ns)

    def start(
        self, now_ns: int, position: Sequence[float], velocity: Sequence[float], limits: Snapshot
    ) -> None:
        """Begin at a measured state, and come to rest from there when it moves.

        A joint that is measured above its velocity limit begins at the limit.
        """
        self.position[:] = position
        for i in range(self._n):
            most = limits.velocity_limit[i]
            self.velocity[i] = max(-most, min(most, velocity[i]))
            self.acceleration[i] = 0.0
        self.last_ns = now_ns
        self._offset.clear()
        if any(abs(v) > self._config.rest_velocity for v in velocity):
            self._begin_ramp(now_ns, self._config.fail_safe_deceleration, limits)
        else:
            for i in range(self._n):
                self.velocity[i] = 0.0
            self._hold[:] = position
            self.path = Path.HOLD

    def follow(self, table: ChunkTable, limits: Snapshot) -> None:
        """Leave the present path for a chunk, from the last set-point on.

        Raises:
            ChunkRefusedError: it is too far away or cannot be reached inside limits; nothing has
                changed then.
        """
        config = self._config
        self._candidate.load(table, self.last_ns, self.position)
        self._old_offset.copy_from(self._offset)
        self._candidate.join(
            self.last_ns,
            self.position,
            self.velocity,
            self.acceleration,
            self._offset,
            limits,
            shortest=config.blend_time,
            longest=config.blend_time_limit,
            farthest=config.chunk_distance_limit,
            share=config.blend_acceleration,
        )
        for kept, now in zip(
            self._old_state, (self.position, self.velocity, self.acceleration), strict=True
        ):
            kept[:] = now
        self._old_ns = self.last_ns
        self._old_path = self.path
        self._old_player.copy_from(self._player)
        self._player.copy_from(self._candidate)
        self.path = Path.CHUNK

    def withdraw(self) -> None:
        """Take the last :meth:`follow` back, and what :meth:`advance` did since."""
        self.position[:], self.velocity[:], self.acceleration[:] = self._old_state
        self.last_ns = self._old_ns
        self.path = self._old_path
        self._player.copy_from(self._old_player)
        self._offset.copy_from(self._old_offset)

    def brake(self, share: float, limits: Snapshot) -> None:
        """Leave the present path and come to rest, with a share of the acceleration limits."""
        if self.at_rest:
            return
        if self.path is Path.RAMP and self._ramp_share >= share:
            return  # a second ramp from the middle of the first would only end later
        self._begin_ramp(self.last_ns, share, limits)

    def slide_to(self, position: Sequence[float], limits: Snapshot) -> float:
        """Move from rest to a pose near by, as fast as limits allow; return the duration [s]."""
        difference = [own - there for own, there in zip(self.position, position, strict=True)]
        budget = [0.5 * a for a in limits.acceleration_limit]
        duration = shortest_duration(difference, self.velocity, budget)
        self._offset.position[:] = difference
        self._offset.velocity[:] = self.velocity
        for i in range(self._n):
            self._offset.acceleration[i] = 0.0
            # peak velocity of the quintic is 1.875 x distance / duration
            duration = max(duration, 1.875 * abs(difference[i]) / limits.velocity_limit[i])
        self._offset.start_ns = self.last_ns
        self._offset.duration = duration
        self._hold[:] = position
        self.path = Path.HOLD
        return duration

    def advance(self, now_ns: int, limits: Snapshot) -> bool:
        """Move to an instant; return False when the path broke a tick's limits and was left."""
        if now_ns <= self.last_ns:
            return True
        self._evaluate(now_ns, limits)
        position, velocity, acceleration = self._next
        dt = (now_ns - self.last_ns) * 1e-9
        # What all joints together keep, each keeps; else it is looked at joint by joint.
        ok = (
            math.dist(position, self.position) <= limits.slowest * dt
            and math.dist(velocity, self.velocity) <= limits.gentlest * dt
        ) or self._inside_limits(dt, limits)
        if not ok:
            self.left_path += 1
            self._begin_ramp(self.last_ns, self._config.stop_deceleration, limits)
            self._ramp.evaluate(now_ns, position, velocity, acceleration)
        self.position[:] = position
        self.velocity[:] = velocity
        self.acceleration[:] = acceleration
        self.last_ns = now_ns
        return ok

    def _evaluate(self, now_ns: int, limits: Snapshot) -> None:
        position, velocity, acceleration = self._next
        path = self.path
        if path is _CHUNK:
            player = self._player
            player.evaluate(now_ns, position, velocity, acceleration)
            if now_ns >= player.end_ns:
                self._run_off(player.end_ns, now_ns, limits)
                return
        elif path is _RAMP:
            self._ramp.evaluate(now_ns, position, velocity, acceleration)
            if self._ramp.done(now_ns):
                self._hold[:] = position
                self.path = Path.HOLD
            return
        else:
            position[:] = self._hold
            velocity[:] = acceleration[:] = self._zero
        if self._offset.duration > 0.0:
            self._offset.add_to(now_ns, position, velocity, acceleration)

    def _run_off(self, end_ns: int, now_ns: int, limits: Snapshot) -> None:
        """The chunk has ended: hold its end if it rests, else ramp from there, at its own time."""
        position, velocity, acceleration = self._next
        table = self._player.table
        assert table is not None
        if table.rests:
            self._hold[:] = position
            self.path = Path.HOLD
            for i in range(self._n):
                velocity[i] = 0.0
            self._offset.add_to(now_ns, position, velocity, acceleration)
            return
        acceleration[:] = table.accelerations()[-1].tolist()
        from_ns = max(end_ns, self.last_ns)
        self._offset.add_to(from_ns, position, velocity, acceleration)
        share = self._config.starvation_deceleration
        self._plan_ramp(from_ns, share, limits, self._next)
        if not self._stops_inside_bounds():
            self._plan_ramp(from_ns, 1.0, limits, self._next)
        self._ramp.evaluate(now_ns, position, velocity, acceleration)

    def _stops_inside_bounds(self) -> bool:
        return all(
            self._lower[i] <= self._ramp.stop_position(i) <= self._upper[i] for i in range(self._n)
        )

    def _begin_ramp(self, start_ns: int, share: float, limits: Snapshot) -> None:
        state = (self.position, self.velocity, self.acceleration)
        self._plan_ramp(start_ns, share, limits, state)

    def _plan_ramp(
        self,
        start_ns: int,
        share: float,
        limits: Snapshot,
        state: tuple[list[float], list[float], list[float]],
    ) -> None:
        most = [share * a for a in limits.acceleration_limit]
        self._ramp.begin(start_ns, *state, most)
        self._ramp_share = share
        self._offset.clear()
        self.path = Path.RAMP

    def _inside_limits(self, dt: float, limits: Snapshot) -> bool:
        """Judge the next state joint by joint; NaN is outside."""
        position, velocity, _ = self._next
        for i in range(self._n):
            most = limits.velocity_limit[i] * dt * _STEP_SLACK + _POSITION_SLACK
            if not -most <= position[i] - self.position[i] <= most:
                return False
            most = limits.acceleration_limit[i] * dt * _STEP_SLACK + _VELOCITY_SLACK
            if not -most <= velocity[i] - self.velocity[i] <= most:
                return False
        return True
