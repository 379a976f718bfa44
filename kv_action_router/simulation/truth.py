"""What only a simulator knows: where the tool touched the target, and how hard."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.simulation.scene import TARGET_BODY, TARGET_GEOM, TIP_SITE

_CLEAR = 0.010  # [m] between tip and the target's rim after which a touch counts anew


@dataclass(frozen=True)
class Contact:
    """First contact of the robot with the target.

    Attributes:
        point: where the surfaces met, base frame [m] (3,).
        target: true pose of the target's center of the top face, base frame [m] (3,).
        tip: foremost point of the tool [m] (3,).
        error: distance of ``point`` from ``target`` [m].
        force: normal force in the step of first contact [N].
        geom: name of the robot's shape that touched.
    """

    point: FloatArray
    target: FloatArray
    tip: FloatArray
    error: float
    force: float
    geom: str


class ContactTruth:
    """Finds the first contact of each touch.

    Invariant: one contact is reported per touch; the next one only after :meth:`rearm`, or after
    the tip has been clear of the target.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self._target_geom = model.geom(TARGET_GEOM).id
        self._target_body = model.body(TARGET_BODY).id
        self._tip_site = model.site(TIP_SITE).id
        self._clear = float(model.geom_size[self._target_geom][0]) + _CLEAR
        self._touched = False
        self._force = np.zeros(6)

    def rearm(self) -> None:
        """Report the next contact, whatever came before."""
        self._touched = False

    def tip(self, data: mujoco.MjData) -> FloatArray:
        """Return the foremost point of the tool [m] (3,)."""
        return np.array(data.site_xpos[self._tip_site])

    def check(self, data: mujoco.MjData) -> Contact | None:
        """Return the contact that began in this physics step, or None."""
        if self._touched:
            offset = data.site_xpos[self._tip_site] - data.xpos[self._target_body]
            if offset @ offset > self._clear**2:
                self._touched = False
            return None
        if data.ncon == 0:
            return None
        return self._find(data)

    def _find(self, data: mujoco.MjData) -> Contact | None:
        pairs = data.contact.geom
        for index in range(data.ncon):
            first, second = pairs[index]
            if self._target_geom not in (first, second):
                continue
            mujoco.mj_contactForce(self._model, data, index, self._force)
            point = np.array(data.contact.pos[index])
            target = np.array(data.xpos[self._target_body])
            other = second if first == self._target_geom else first
            self._touched = True
            return Contact(
                point=point,
                target=target,
                tip=self.tip(data),
                error=float(np.linalg.norm(point - target)),
                force=float(self._force[0]),
                geom=self._model.geom(int(other)).name,
            )
        return None
