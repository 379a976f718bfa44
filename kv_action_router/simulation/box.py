"""A box that can be put into the cell, and taken away again."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError

BOX_BODY = "box"
BOX_GEOM = "box_shape"

_SMALLEST, _LARGEST = 0.01, 0.6  # [m] of an edge
_FAR = 1.0  # [m] beyond which distances are not measured
_FARTHEST = 1.5  # [m] from the base
_AWAY = (0.0, 0.0, -2.0)  # [m] below the table, where nothing is seen or touched
_COLOR = (0.20, 0.30, 0.55, 1.0)


def add_box(spec: mujoco.MjSpec) -> None:
    """Add the box to a scene, put away."""
    # A mocap body, as the target: it stands like a rock when it is touched.
    body = spec.worldbody.add_body(name=BOX_BODY, mocap=True, pos=_AWAY)
    body.add_geom(
        name=BOX_GEOM, type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.03, 0.03, 0.03], rgba=_COLOR
    )


class Box:
    """The box, and who has touched it. Belongs to the thread of the physics.

    Attributes:
        present: it stands in the cell.
        contact_steps: physics steps in which something touched it since it was placed.
        touched_by: shape of the robot that touched it first since then; empty = none.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, target_radius: float) -> None:
        """Find it in a scene.

        Args:
            model, data: of the scene.
            target_radius: the target is to be seen and touched, with this much around it [m].
        """
        self._model, self._data = model, data
        self._margin = target_radius
        self._geom = int(model.geom(BOX_GEOM).id)
        body = model.body(BOX_BODY).id
        self._mocap = int(model.body_mocapid[body])
        self._bounds = int(model.body_bvhadr[body])
        self.present = False
        self.contact_steps = 0
        self.touched_by = ""

    def covers(self, place: FloatArray) -> bool:
        """Say whether a target with its center at x, y [m] (2,) would stick in the box."""
        if not self.present:
            return False
        half, position, (w, _, _, z) = self._state()
        cosine, sine = w * w - z * z, 2.0 * w * z
        dx, dy = place[0] - position[0], place[1] - position[1]
        along, across = cosine * dx + sine * dy, cosine * dy - sine * dx
        return bool(abs(along) < half[0] + self._margin and abs(across) < half[1] + self._margin)

    def place(
        self, x: float, y: float, size: FloatArray, target: FloatArray, yaw: float = 0.0
    ) -> None:
        """Put the box on the table.

        Args:
            x, y: middle of its footprint, base frame [m].
            size: edges along its own x, y, z [m] (3,).
            target: where the target is now [m] (3,).
            yaw: turn about z [rad].

        Raises:
            InputError: not finite, too small, large or far, or the robot or target is there.
        """
        size = np.asarray(size, dtype=float)
        if size.shape != (3,) or not ((size >= _SMALLEST) & (size <= _LARGEST)).all():
            raise InputError("size", f"3 edges of {_SMALLEST} to {_LARGEST} m", size.tolist())
        if not math.isfinite(yaw):
            raise InputError("yaw", "finite", yaw)
        if not math.hypot(x, y) <= _FARTHEST:
            raise InputError("position", f"at most {_FARTHEST} m from the base", (x, y))
        before, was_present = self._state(), self.present
        half = 0.5 * size
        quaternion = np.array((math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2)))
        self._put(half, np.array((x, y, half[2])), quaternion)
        self.present = True
        touched = "the target" if self.covers(target) else self._touched()
        if touched:
            self._put(*before)
            self.present = was_present
            mujoco.mj_forward(self._model, self._data)
            raise InputError("position", "free", f"({x:g}, {y:g}) m, where {touched} is")
        self.contact_steps, self.touched_by = 0, ""

    def distance(self) -> float:
        """Return how far the robot's nearest shape is from the box [m], 1 at most."""
        model, data = self._model, self._data
        nearest = _FAR
        for geom in range(model.ngeom):
            body = model.geom_bodyid[geom]
            # Body 0 is table and floor; what is put somewhere is no robot; and what cannot collide
            # is there to be looked at.
            if body == 0 or model.body_mocapid[body] >= 0 or not model.geom_contype[geom]:
                continue
            nearest = min(
                nearest, mujoco.mj_geomDistance(model, data, self._geom, geom, nearest, None)
            )
        return nearest

    def remove(self) -> None:
        """Take the box away, if it is there."""
        self._data.mocap_pos[self._mocap] = _AWAY
        self.present = False

    def check(self) -> None:
        """Note who touches the box in the step that was just done."""
        data = self._data
        if not self.present or data.ncon == 0:
            return
        touched = self._toucher()
        if touched:
            self.contact_steps += 1
            self.touched_by = self.touched_by or touched

    @property
    def half_size(self) -> FloatArray:
        """Half its sizes [m] (3,); a view."""
        return self._model.geom_size[self._geom]

    def _state(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        data, mocap = self._data, self._mocap
        size = self._model.geom_size[self._geom].copy()
        return size, data.mocap_pos[mocap].copy(), data.mocap_quat[mocap].copy()

    def _put(self, half: FloatArray, position: FloatArray, quaternion: FloatArray) -> None:
        model, data = self._model, self._data
        model.geom_size[self._geom] = half
        model.geom_rbound[self._geom] = float(np.linalg.norm(half))
        # The search for contacts keeps bounds of its own.
        model.geom_aabb[self._geom] = model.bvh_aabb[self._bounds] = (0.0, 0.0, 0.0, *half)
        data.mocap_pos[self._mocap] = position
        data.mocap_quat[self._mocap] = quaternion

    def _touched(self) -> str:
        """Return what the box touches where it stands now; empty = nothing."""
        mujoco.mj_forward(self._model, self._data)
        return self._toucher()

    def _toucher(self) -> str:
        for first, second in self._data.contact.geom:
            if self._geom in (first, second):
                other = second if first == self._geom else first
                return str(self._model.geom(int(other)).name)
        return ""
