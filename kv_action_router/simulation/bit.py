"""The tool's bit as work-pieces meet it: how hard it stands on them, and what they do to it."""

from __future__ import annotations

import math
from typing import Any

import mujoco
import numpy as np

from kv_action_router.contracts import FloatArray

# What the bit stands on. Bit and holder give way by 0.3 mm at 8 N; the same impedance at any depth
# keeps it linear. Oiled steel: next to no friction across.
CONTACT: dict[str, Any] = {
    "condim": 1,
    "solref": (0.015, 1.0),
    "solimp": (0.6, 0.6, 0.001, 0.5, 2.0),
    "priority": 2,
}
_SPINDLE_BODY, _TIP_SITE = "spindle", "tool_tip"


class Bit:
    """The foremost part of the tool; the physics thread's own.

    Invariant: what acts on it is given anew for each step, between :meth:`before_step` and the
    physics.

    Attributes:
        tip: foremost point, base frame [m] (3,); a view of MuJoCo's memory.
        speed: of the tip, over the step before [m/s] (3,).
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.tip: FloatArray = data.site_xpos[model.site(_TIP_SITE).id]
        self._model, self._data = model, data
        self._body = model.body(_SPINDLE_BODY).id
        self._applied: FloatArray = data.xfrc_applied[self._body]
        self._center: FloatArray = data.xipos[self._body]
        self.speed: FloatArray = np.zeros(3)
        self._last = np.array(self.tip)
        self._force = np.zeros(6)

    @property
    def slid(self) -> float:
        """Level way of the tip over the newest step [m]."""
        return math.dist(self.tip[:2], self._last[:2])

    def before_step(self) -> None:
        """Let nothing act on it, until somebody does."""
        self._applied[:] = 0.0

    def after_step(self) -> None:
        """Note where it is and how fast; call it when everybody has followed the step."""
        np.subtract(self.tip, self._last, out=self.speed)
        self.speed /= self._model.opt.timestep
        self._last[:] = self.tip

    def push(self, force: FloatArray) -> None:
        """Let a force act on the tip in the next step, base frame [N] (3,)."""
        self._applied[:3] += force
        self._applied[3:] += np.cross(self.tip - self._center, force)

    def hold_on_axis(self, axis: FloatArray, stiffness: float, damping: float) -> None:
        """Let walls around an upright axis at x, y [m] (2,) act, [N/m] and [N s/m]."""
        force = np.zeros(3)
        force[:2] = stiffness * (axis - self.tip[:2]) - damping * self.speed[:2]
        self.push(force)

    def press_on(self, geom: int) -> float:
        """Return the force with which something stands on a geom [N]."""
        data = self._data
        total = 0.0
        if data.ncon:
            pairs = data.contact.geom
            for index in range(data.ncon):
                if geom in pairs[index]:
                    mujoco.mj_contactForce(self._model, data, index, self._force)
                    total += float(self._force[0])
        return total
