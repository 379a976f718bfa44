"""Plays one chunk on the injector's own clock, and finds the way from the set-point onto it."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np

from kv_action_router.contracts import CHUNK_PERIOD, CHUNK_SAMPLES, FloatArray
from kv_action_router.errors import ChunkRefusedError
from kv_action_router.injection.blend import OffsetBlend, shortest_duration
from kv_action_router.injection.chunk_table import END_NS, PERIOD_NS, ChunkTable
from kv_action_router.injection.execution_table import Snapshot
from kv_action_router.injection.robot import JointModel

_AGREES_POSITION = 1e-6  # [rad] a chunk that differs by less is a continuation of the same path
_AGREES_VELOCITY = 1e-4  # [rad/s]
_LEAST_BUDGET = 0.3  # share of the acceleration limit that a blend may count on
_GRID = 24
_LIMIT_SLACK = 1.01
_TURN = 2.0 * math.pi


class ChunkPlayer:
    """Path of one chunk: cubic Hermite between its samples, at its own times, never compressed."""

    def __init__(self, model: JointModel) -> None:
        self._n = len(model.joint_names)
        self._names = model.joint_names
        self._continuous: list[bool] = model.continuous.tolist()
        self._turns = any(self._continuous)
        self.table: ChunkTable | None = None
        self.end_ns = 0  # CLOCK_MONOTONIC of the last sample
        self._anchor_ns = 0
        self._rows = memoryview(b"")
        self._pair = struct.Struct(f"{4 * self._n}d").unpack_from  # two rows, one after the other
        self._row_size = 2 * self._n * 8
        self._shift = [0.0] * self._n  # [rad] whole turns, or the start of relative joints
        self._zero = [0.0] * self._n

    def copy_from(self, other: ChunkPlayer) -> None:
        """Play what another player plays."""
        self.table = other.table
        self.end_ns = other.end_ns
        self._anchor_ns = other._anchor_ns
        self._rows = other._rows
        self._shift[:] = other._shift

    def load(self, table: ChunkTable, now_ns: int, position: Sequence[float]) -> None:
        """Play a chunk; whole turns bring continuous joints near ``position`` [rad] (n,)."""
        self.table = table
        self._anchor_ns = table.chunk.anchor_ns
        self.end_ns = self._anchor_ns + END_NS
        self._rows = table.rows.data
        self._shift[:] = self._zero
        if not (self._turns or any(table.relative)):
            return
        entry, _, _ = self.state(now_ns)
        for i in range(self._n):
            if table.relative[i]:
                self._shift[i] = position[i] - entry[i]
            elif self._continuous[i]:
                self._shift[i] = _TURN * round((position[i] - entry[i]) / _TURN)

    def state(self, now_ns: int) -> tuple[list[float], list[float], list[float]]:
        """Return position, velocity and acceleration at an instant as new lists (n,)."""
        position, velocity, acceleration = list(self._zero), list(self._zero), list(self._zero)
        self.evaluate(now_ns, position, velocity, acceleration)
        return position, velocity, acceleration

    def evaluate(
        self, now_ns: int, position: list[float], velocity: list[float], acceleration: list[float]
    ) -> None:
        """Write the path at an instant into the three lists (n,).

        Before the anchor the first interval goes on backward (a tick at most); from the last sample
        on its values stand.
        """
        since = now_ns - self._anchor_ns
        n = self._n
        if since < 0:
            self._extrapolate(since * 1e-9, position, velocity, acceleration)
            return
        if since >= END_NS:
            last = self._pair(self._rows, (CHUNK_SAMPLES - 2) * self._row_size)[2 * n :]
            for i, shift in enumerate(self._shift):
                position[i] = last[i] + shift
                velocity[i] = last[n + i]
                acceleration[i] = 0.0
            return
        index, rest = divmod(since, PERIOD_NS)
        s = rest / PERIOD_NS
        row = self._pair(self._rows, index * self._row_size)
        r = 1.0 - s
        h1 = s * s * (3.0 - 2.0 * s)
        h0 = 1.0 - h1
        g0 = CHUNK_PERIOD * s * r * r
        g1 = -CHUNK_PERIOD * s * s * r
        for i, shift in enumerate(self._shift):
            a, b = row[n + i], row[3 * n + i]
            position[i] = h0 * row[i] + h1 * row[2 * n + i] + g0 * a + g1 * b + shift
            change = b - a
            velocity[i] = a + change * s
            acceleration[i] = change / CHUNK_PERIOD

    def _extrapolate(
        self, t: float, position: list[float], velocity: list[float], acceleration: list[float]
    ) -> None:
        n = self._n
        row = self._pair(self._rows, 0)
        for i, shift in enumerate(self._shift):
            speed = row[n + i]
            rate = (row[3 * n + i] - speed) / CHUNK_PERIOD
            position[i] = row[i] + (speed + 0.5 * rate * t) * t + shift
            velocity[i] = speed + rate * t
            acceleration[i] = rate

    def join(
        self,
        last_ns: int,
        position: Sequence[float],
        velocity: Sequence[float],
        acceleration: Sequence[float],
        offset: OffsetBlend,
        limits: Snapshot,
        *,
        shortest: float,
        longest: float,
        farthest: float,
        share: float,
    ) -> None:
        """Set ``offset`` so that the set-point goes on from its last state without a step.

        Args:
            last_ns: CLOCK_MONOTONIC of the last set-point [ns].
            position: last set-point [rad] (n,); likewise velocity [rad/s] and acceleration.
            offset: between the last path and the last set-point; kept when the new path agrees with
                the last one, else replaced.
            limits: in force.
            shortest: blend that is used whenever the limits allow it [s].
            longest: blend that is still accepted [s].
            farthest: distance that is still accepted [rad].
            share: of the acceleration limits that path and offset may use together.

        Raises:
            ChunkRefusedError: the chunk is too far away, or cannot be reached inside limits in
                time; ``offset`` is then unchanged.
        """
        p, v, a = self.state(last_ns)
        dp, dv, da = list(self._zero), list(self._zero), list(self._zero)
        if offset.active(last_ns):
            offset.add_to(last_ns, dp, dv, da)
        agrees = True
        for i in range(self._n):
            p[i] = distance = position[i] - p[i]
            v[i] = speed = velocity[i] - v[i]
            a[i] = acceleration[i] - a[i]
            if not -farthest <= distance <= farthest:
                raise ChunkRefusedError(
                    f"{self._names[i]} must be within {farthest} rad of the set-point, got "
                    f"{abs(distance):.4f}"
                )
            if not (
                abs(distance - dp[i]) < _AGREES_POSITION and abs(speed - dv[i]) < _AGREES_VELOCITY
            ):
                agrees = False
        if agrees:
            return
        most = share * np.array(limits.acceleration_limit)
        offset.duration = self._blend_duration(last_ns, (p, v, a), most, limits, shortest, longest)
        offset.position[:] = p
        offset.velocity[:] = v
        offset.acceleration[:] = a
        offset.start_ns = last_ns

    def _blend_duration(
        self,
        last_ns: int,
        difference: tuple[list[float], list[float], list[float]],
        most: FloatArray,
        limits: Snapshot,
        shortest: float,
        longest: float,
    ) -> float:
        table = self.table
        assert table is not None
        entry = max(0, (last_ns - table.chunk.anchor_ns) // PERIOD_NS)
        p, v, _ = difference
        rates = table.accelerations()
        used = np.abs(rates[entry:]).max(axis=0)
        budget = np.maximum(most - used, _LEAST_BUDGET * most)
        duration = max(shortest, shortest_duration(p, v, budget.tolist()))
        while duration <= longest:
            if self._fits(entry, duration, difference, rates, most, limits):
                return duration
            duration *= 1.25
        raise ChunkRefusedError(
            f"the blend from the set-point ({max(map(abs, p)):.4f} rad and {max(map(abs, v)):.4f} "
            f"rad/s away) must fit into {longest} s inside the acceleration limits"
        )

    def _fits(
        self,
        entry: int,
        duration: float,
        difference: tuple[list[float], list[float], list[float]],
        rates: FloatArray,
        most: FloatArray,
        limits: Snapshot,
    ) -> bool:
        """Return whether path plus offset stays inside velocity limits and ``most`` (n,).

        Where the path alone uses more than that, the offset may not add to it.
        """
        table = self.table
        assert table is not None
        p, v, a = (np.array(part) for part in difference)
        s = np.linspace(0.0, 1.0, _GRID)[:, None]
        r = 1.0 - s
        t = duration
        speed = p * (-30.0 * s * s * r * r / t) + v * (
            1.0 - s * s * (18.0 - 32.0 * s + 15.0 * s * s)
        )
        speed += a * (t * s * r * r * (1.0 - 2.5 * s))
        rate = p * (-60.0 * s * r * (1.0 - 2.0 * s) / (t * t))
        rate += v * (-s * (36.0 - 96.0 * s + 60.0 * s * s) / t)
        rate += a * (r * (1.0 - 8.0 * s + 10.0 * s * s))
        index = entry + np.rint(s[:, 0] * t / CHUNK_PERIOD).astype(int)
        beyond = index >= CHUNK_SAMPLES
        index[beyond] = CHUNK_SAMPLES - 1
        path_rate = rates[index]
        path_rate[beyond] = 0.0  # the next chunk is checked when it comes
        total_speed = np.abs(table.velocities[index] + speed)
        total_rate = np.abs(path_rate + rate)[1:]  # the first one stands already
        allowed = np.maximum(most, np.abs(path_rate[1:]))
        return bool(
            (total_speed <= _LIMIT_SLACK * np.array(limits.velocity_limit)).all()
            and (total_rate <= _LIMIT_SLACK * allowed).all()
        )
