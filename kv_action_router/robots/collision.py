"""Padded collision test of the arm against itself, obstacle spheres and the table."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import coal
import numpy as np
import pinocchio as pin

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError
from kv_action_router.robots.kinematics import Kinematics
from kv_action_router.robots.segments import BoolArray, CapsuleAxes
from kv_action_router.robots.shapes import Capsules, link_name, load_capsules

TABLE = "table"
NO_SPHERES = np.zeros((0, 4))


class CollisionModel:
    """Says which pair of things would touch at a configuration.

    Against itself and the table: coal, in one call of pinocchio, on the capsules of the MJCF. Left
    out are links that a single joint moves against each other, and what the MJCF excludes. Against
    obstacles, which change with every image: the closed form for a capsule and a sphere, all at
    once. As coal pairs, 256 spheres took 360 us to test and 850 us to place. Whole motions are
    the business of ``robots.swept``.

    The base (what no joint moves) is tested against the arm only: it stands on the table, and what
    is near it is its mount.

    Args:
        kinematics: of the arm; not shared with another thread.
        table_height: top of the table in the base frame [m]; None = no table.

    Attributes:
        extent: no point of the arm is farther from an axis that moves it [m].
        spindles: joints that turn a tool on its own axis (n,): no shape moves with them.
    """

    def __init__(self, kinematics: Kinematics, table_height: float | None = None) -> None:
        self._model, self._data = kinematics.model, kinematics.model.createData()
        self._geometry = kinematics.geometry()
        capsules = load_capsules(self._model, self._geometry, kinematics.mjcf)
        self.spindles = np.isinf(self._model.upperPositionLimit) & ~kinematics.moves_tip()
        self._moving = np.flatnonzero(capsules.joint != 0)
        self._links = tuple(capsules.links[i] for i in self._moving)
        self._axes = CapsuleAxes(self._data, capsules.taken(self._moving))
        self.extent = _extent(self._model, capsules)
        self._add_self_pairs(_excluded(kinematics.mjcf))
        self._table_pairs: dict[int, str] = {}
        if table_height is not None:
            self._add_table(table_height)
        self._results = self._geometry.createData()
        self._padding = 0.0
        self._ignored: frozenset[str] = frozenset()

    @property
    def pair_count(self) -> int:
        """Pairs that are tested beside obstacles."""
        return len(self._geometry.collisionPairs)

    def in_collision(
        self,
        q: FloatArray,
        spheres: FloatArray = NO_SPHERES,
        padding: float = 0.0,
        may_touch: Collection[str] = (),
    ) -> str | None:
        """Return the first pair nearer than ``padding``, or None.

        Args:
            q: joint positions [rad] (n,).
            spheres: obstacles x, y, z, r in the base frame [m] (k, 4).
            padding: [m], at least 0.
            may_touch: links that are allowed near table and obstacles, e.g. ``spindle`` in a stage
                that touches; they are still tested against the arm itself.

        Returns:
            ``link - link``, ``link - table`` or ``link - obstacle <row>``.

        Raises:
            InputError: ``q``, ``spheres`` or ``padding`` has the wrong size or is not finite.
        """
        found = self.first_collision(np.asarray(q, float)[None], spheres, padding, may_touch)
        return None if found is None else found[1]

    def first_collision(
        self,
        path: FloatArray,
        spheres: FloatArray = NO_SPHERES,
        padding: float = 0.0,
        may_touch: Collection[str] = (),
    ) -> tuple[int, str] | None:
        """Return row and pair of the first configuration (r, n) that would touch, or None.

        Raises:
            InputError: as :meth:`in_collision`.
        """
        if np.ndim(path) != 2 or np.shape(path)[1] != self._model.nq or not np.isfinite(path).all():
            raise InputError("q", f"{self._model.nq} finite joint positions", path)
        self.configure(padding, may_touch)
        allowed = None
        if self._ignored:
            allowed = np.broadcast_to(self.among(may_touch), (len(spheres), len(self._links)))
        found, placed = None, []
        for row, q in enumerate(np.asarray(path, float)):
            pair = self.touched_at(q)
            if pair is not None:
                found = row, pair
                break
            if len(spheres):
                placed.append(self.placements())
        if placed:
            near = self.first_obstacle(self.ends(np.array(placed)), spheres, padding, allowed)
            if near is not None:
                return near
        return found

    # --- for whoever tests many configurations ---

    @property
    def links(self) -> tuple[str, ...]:
        """Link of each capsule that moves (c)."""
        return self._links

    def among(self, links: Collection[str]) -> BoolArray:
        """Return which capsules belong to some links (c,)."""
        return np.array([link in links for link in self._links])

    def touched_at(self, q: FloatArray) -> str | None:
        """Return the pair in which the arm touches itself or the table at ``q`` (n,), or None.

        Padding and allowed links are those of :meth:`configure`. The arm stands at ``q`` from then
        on, for :meth:`placements`.
        """
        if pin.computeCollisions(self._model, self._data, self._geometry, self._results, q, True):
            return self._colliding_pair()
        return None

    def placements(self) -> FloatArray:
        """Return where the joints are, as :meth:`ends` takes it (j, 4, 3)."""
        return self._axes.placements()

    def ends(self, placements: FloatArray) -> FloatArray:
        """Return both ends of each capsule [m] (r, c, 2, 3) at placements (r, j, 4, 3)."""
        return self._axes.ends(placements)

    def first_obstacle(
        self,
        ends: FloatArray,
        spheres: FloatArray,
        padding: float,
        allowed: BoolArray | None = None,
    ) -> tuple[int, str] | None:
        """Return row and pair of the first configuration nearer to an obstacle than ``padding``.

        Args:
            ends: of the capsules at r configurations [m] (r, c, 2, 3).
            spheres: x, y, z, r in the base frame [m] (k, 4).
            padding: [m].
            allowed: pairs of sphere and capsule that may be near (k, c); None = none may.

        Raises:
            InputError: ``spheres`` has the wrong size or is not finite.
        """
        spheres = np.asarray(spheres, dtype=float)
        if spheres.ndim != 2 or spheres.shape[1] != 4 or not np.isfinite(spheres).all():
            raise InputError("spheres", "finite, of size (k, 4)", spheres.shape)
        found = self._axes.first_near(ends, spheres, padding, allowed)
        if found is None:
            return None
        row, sphere, capsule = found
        return row, f"{self._links[capsule]} - obstacle {sphere}"

    def _add_self_pairs(self, excluded: set[frozenset[str]]) -> None:
        objects = self._geometry.geometryObjects
        parents = self._model.parents
        for first in range(len(objects)):
            for second in range(first + 1, len(objects)):
                a, b = objects[first].parentJoint, objects[second].parentJoint
                if a == b or parents[a] == b or parents[b] == a:
                    continue
                names = frozenset((self._name(first), self._name(second)))
                if names not in excluded:
                    self._geometry.addCollisionPair(pin.CollisionPair(first, second))

    def _add_table(self, height: float) -> None:
        below = coal.Halfspace(np.array([0.0, 0.0, 1.0]), float(height))
        table = self._geometry.addGeometryObject(
            pin.GeometryObject(TABLE, 0, 0, pin.SE3.Identity(), below)
        )
        for index in self._moving:
            self._table_pairs[len(self._geometry.collisionPairs)] = self._name(int(index))
            self._geometry.addCollisionPair(pin.CollisionPair(int(index), table))

    def _name(self, index: int) -> str:
        item = self._geometry.geometryObjects[index]
        return TABLE if item.name == TABLE else link_name(self._model, item)

    def configure(self, padding: float, may_touch: Collection[str]) -> None:
        """Set padding [m] and links that may touch the table, for :meth:`touched_at`.

        Raises:
            InputError: negative or not finite padding, or a link that there is not.
        """
        ignored = frozenset(may_touch)
        if padding != self._padding:
            if not (np.isfinite(padding) and padding >= 0.0):
                raise InputError("padding", "finite and at least 0 m", padding)
            for request in self._results.collisionRequests:
                request.security_margin = padding
            self._padding = padding
        if ignored != self._ignored:
            unknown = ignored - set(self._links)
            if unknown:
                raise InputError(
                    "may_touch", f"of {', '.join(dict.fromkeys(self._links))}", sorted(unknown)
                )
            for pair, link in self._table_pairs.items():
                if link in ignored:
                    self._results.deactivateCollisionPair(pair)
                else:
                    self._results.activateCollisionPair(pair)
            self._ignored = ignored

    def _colliding_pair(self) -> str:
        for pair, result in zip(
            self._geometry.collisionPairs, self._results.collisionResults, strict=True
        ):
            if result.isCollision():
                return f"{self._name(pair.first)} - {self._name(pair.second)}"
        raise AssertionError("pinocchio reported a collision without a pair")


def _extent(model: Any, capsules: Capsules) -> float:
    """Return the length of the stretched chain behind the first joint, capsules included [m]."""
    chain = sum(float(np.linalg.norm(place.translation)) for place in model.jointPlacements[2:])
    outline = np.linalg.norm(capsules.start, axis=1), np.linalg.norm(capsules.end, axis=1)
    return chain + float((np.maximum(*outline) + capsules.radius).max())


def _excluded(mjcf: Path) -> set[frozenset[str]]:
    """Return the pairs of bodies that an MJCF excludes from contact."""
    root: Any = ElementTree.parse(mjcf).getroot()
    return {
        frozenset((str(item.get("body1")), str(item.get("body2"))))
        for item in root.iterfind("contact/exclude")
    }
