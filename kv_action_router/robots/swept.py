"""Padded collision test of a whole motion, with a bound on what samples can miss.

Between two samples that are tested, no point of the arm travels farther than the padding. So
whatever it passes, it is within half the padding of a place that was tested, and a motion that is
let through keeps at least half the padding from what stands still, and does not touch itself.
Nothing slips through, however thin it is.

The travel is measured, not guessed: each capsule's ends move by a chord, and the way between them
leaves the chord by at most |x''| / 8, with |x''| <= (sum of joint steps)^2 * extent for joints that
move evenly. Joint steps are summed over samples finer than a spline's spans.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError
from kv_action_router.robots.collision import CollisionModel
from kv_action_router.robots.segments import BoolArray

FINEST_SPACING = 0.005  # [m] a smaller padding is not sampled finer than this
SAMPLES = 25  # instants to begin with, about one a span of 28 coefficients; then as many as needed
COARSE_REACH = 0.1  # [m] of travel for a rad of all joints together: it only says where to begin
COARSE = 3.0  # times the padding, tested first
LEAVING = 0.5  # share of the padding for a motion that begins too near
ROUNDS = 8  # halving that often comes down to neighboring instants


@dataclass(frozen=True, slots=True)
class AllowedContact:
    """What may be touched: some links may touch the table, and obstacles around a place.

    Attributes:
        links: that may touch.
        place: middle of what may be touched, base frame [m] (3,); None = not known, any obstacle.
        reach: obstacles whose middle is nearer than this to ``place`` are part of it [m].
    """

    links: tuple[str, ...] = ()
    place: FloatArray | None = None
    reach: float = 0.0


NO_CONTACT = AllowedContact()


@dataclass(frozen=True, slots=True)
class Touch:
    """Where a motion would come too near.

    Attributes:
        time: after its start [s].
        pair: ``link - link``, ``link - table`` or ``link - obstacle <row>``.
    """

    time: float
    pair: str

    def __str__(self) -> str:
        return f"{self.pair} at {self.time:.2f} s"


class SweptCollision:
    """Tests motions of one arm. Not thread safe.

    Args:
        collision: of the arm; not used by another thread.
    """

    def __init__(self, collision: CollisionModel) -> None:
        self._collision = collision
        self._extent = collision.extent
        self._spindles = collision.spindles

    def first_touch(
        self,
        position: Callable[[FloatArray], FloatArray],
        duration: float,
        spheres: FloatArray,
        padding: float,
        contact: AllowedContact = NO_CONTACT,
    ) -> Touch | None:
        """Return where a motion comes nearer than ``padding`` first, or None.

        Where the arm stands too near already, it may leave: then all of the motion is tested with
        ``LEAVING`` of the padding. What is seen wavers by millimeters, and an arm that has come as
        near as it may must not be caught there.

        Args:
            position: joint positions [rad] (m, n) at times [s] (m,).
            duration: of the motion [s].
            spheres: obstacles x, y, z, r in the base frame [m] (k, 4).
            padding: [m], at least 0.
            contact: what may be touched.

        Raises:
            InputError: positions, padding, spheres, or a link of ``contact`` is wrong.
        """
        # What keeps clear by far is found to do so at a few samples: most of a motion does.
        near, clear = self._first_touch(position, duration, spheres, COARSE * padding, contact)
        if near is None:
            return None

        def rest(times: FloatArray) -> FloatArray:
            return position(times + clear)

        touch, _ = self._first_touch(rest, duration - clear, spheres, padding, contact)
        if touch is not None and clear == touch.time == 0.0:
            padding = LEAVING * padding
            touch, _ = self._first_touch(position, duration, spheres, padding, contact)
        return None if touch is None else Touch(touch.time + clear, touch.pair)

    def touch_at(
        self,
        q: FloatArray,
        spheres: FloatArray,
        padding: float,
        contact: AllowedContact = NO_CONTACT,
    ) -> str | None:
        """Return the pair that is nearer than ``padding`` where the arm stands at ``q``, or None.

        Raises:
            InputError: as :meth:`first_touch`.
        """
        collision = self._collision
        collision.configure(padding, contact.links)
        pair = collision.touched_at(q)
        if pair is not None:
            return pair
        ends = collision.ends(collision.placements()[None])
        found = collision.first_obstacle(ends, spheres, padding, self._allowed(spheres, contact))
        return None if found is None else found[1]

    def _first_touch(
        self,
        position: Callable[[FloatArray], FloatArray],
        duration: float,
        spheres: FloatArray,
        padding: float,
        contact: AllowedContact,
    ) -> tuple[Touch | None, float]:
        """Return where a motion comes nearer than ``padding`` first, or None.

        Beside it stands the time [s] up to which all of the motion keeps clear.
        """
        collision = self._collision
        collision.configure(padding, contact.links)
        spacing = max(padding, FINEST_SPACING)
        times, path, travel = self._sampled(position, duration, spacing)
        rows = self._guess(travel, spacing)
        placed: dict[int, FloatArray] = {}
        touch = last = None
        for _ in range(ROUNDS):
            for row in rows.tolist():
                if row in placed or (last is not None and row >= last):
                    continue
                pair = collision.touched_at(path[row])
                if pair is not None:
                    touch, last = Touch(float(times[row]), pair), row
                placed[row] = collision.placements()
            rows = rows[rows <= (len(path) if last is None else last)]
            ends = collision.ends(np.array([placed[row] for row in rows.tolist()]))
            finer = self._refined(rows, ends, travel, spacing)
            if finer is None:
                break
            rows = finer
        found = collision.first_obstacle(ends, spheres, padding, self._allowed(spheres, contact))
        if found is None:
            clear = rows[-1 if touch is None else max(0, len(rows) - 2)]
            return touch, float(times[clear])
        row, pair = found
        return Touch(float(times[rows[row]]), pair), float(times[rows[max(0, row - 1)]])

    def _sampled(
        self, position: Callable[[FloatArray], FloatArray], duration: float, spacing: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return times (m,), positions (m, n) and the joints' summed travel up to each (m,).

        Neighbors are so near that no refinement is needed between them.
        """
        samples = SAMPLES
        while True:
            times = np.linspace(0.0, duration, samples)
            path = position(times)
            if self._spindles.any():
                path = np.where(self._spindles, 0.0, path)
            steps = np.abs(path[1:] - path[:-1]).sum(axis=1)
            farthest = float(steps.max()) * self._extent
            if not math.isfinite(farthest):
                raise InputError("position", "finite", "NaN or infinity")
            if samples > SAMPLES and farthest <= spacing:
                travel = np.concatenate(([0.0], steps.cumsum()))
                return times, path, travel
            samples = max(4 * SAMPLES, int(samples * farthest / spacing * 1.3))

    @staticmethod
    def _guess(travel: FloatArray, spacing: float) -> npt.NDArray[np.intp]:
        """Return the rows to begin with: first, last, and some of about equal travel between."""
        count = 2 + int(float(travel[-1]) * COARSE_REACH / spacing)
        taken = np.zeros(len(travel), dtype=bool)
        taken[travel.searchsorted(np.arange(count) * (travel[-1] / count))] = True
        taken[0] = taken[-1] = True
        return taken.nonzero()[0]

    def _refined(
        self, rows: npt.NDArray[np.intp], ends: FloatArray, travel: FloatArray, spacing: float
    ) -> npt.NDArray[np.intp] | None:
        """Return more rows where a point travels too far between two; None = nowhere."""
        if len(rows) < 2:
            return None
        moved = (ends[1:] - ends[:-1]).reshape(len(ends) - 1, -1, 3)
        chord = np.sqrt(np.einsum("rei,rei->re", moved, moved).max(axis=1))
        step = travel[rows[1:]] - travel[rows[:-1]]
        farthest = chord + (0.25 * self._extent) * step * step  # twice |x''| / 8: both ways
        parts = np.ceil(farthest / spacing).astype(int)
        wide = (parts > 1) & (rows[1:] - rows[:-1] > 1)
        if not wide.any():
            return None
        parts, first = parts[wide], rows[:-1][wide]
        interval = np.repeat(np.arange(len(parts)), parts)  # one a new row, and one too many
        number = np.arange(len(interval)) - np.repeat(parts.cumsum() - parts, parts)
        share = (number / parts[interval])[number > 0]
        length = (rows[1:] - rows[:-1])[wide]
        interval = interval[number > 0]
        between = (first[interval] + share * length[interval]).round().astype(int)
        taken = np.zeros(len(travel), dtype=bool)
        taken[rows] = taken[between] = True
        finer = taken.nonzero()[0]
        return None if len(finer) == len(rows) else finer

    def _allowed(self, spheres: FloatArray, contact: AllowedContact) -> BoolArray | None:
        """Return which pairs of sphere and capsule may touch (k, c); None = none may."""
        if not contact.links or not len(spheres):
            return None
        links = self._collision.among(contact.links)
        if contact.place is None:
            near = np.ones(len(spheres), dtype=bool)
        else:
            offset = spheres[:, :3] - contact.place
            near = np.einsum("ki,ki->k", offset, offset) < contact.reach**2
        return near[:, None] & links
