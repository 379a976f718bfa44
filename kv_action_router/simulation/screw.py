"""The screw cell's work: a screw in the middle of the target, and a bit that must find its recess.

A bit gets hold of a screw in two steps. Near enough to the screw's axis and pressed on it, it drops
into the recess's mouth, whose walls hold it; turned until its flats fit, it drops to the ground and
turns the screw. It is out again as soon as it is lifted out.

The thread is no joint of the physical model: its friction is dry friction of the spindle's own
joint, which the solver takes implicitly, and the torque that passes through it acts on the tool.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import mujoco
import numpy as np

from kv_action_router.configuration import Configuration, parameter
from kv_action_router.contracts import FloatArray
from kv_action_router.simulation.bit import CONTACT, Bit
from kv_action_router.simulation.thread import Thread, ThreadConfig

SPINDLE_JOINT = "spindle_joint"
_SCREW, _GROUND, _GROUND_GEOM = "screw", "screw_ground", "screw_ground_disc"
_TOOL_BODY, _TIP_SITE = "tool", "tool_tip"
# Dry friction that holds 3.5 N m on the inertia of a spindle: the stiffest that the solver takes.
_SOLREF, _SOLIMP = (0.002, 1.0), (0.9999, 0.9999, 0.001, 0.5, 2.0)


@dataclass(frozen=True)
class ScrewConfig(Configuration):
    """Head and recess of a screw, and what a bit needs to get into it."""

    head_radius: float = parameter(
        2.75e-3, "radius of the head", unit="m", minimum=1.0e-4, maximum=0.05
    )
    head_height: float = parameter(
        2.0e-3, "height of the head", unit="m", minimum=1.0e-4, maximum=0.05
    )
    capture_distance: float = parameter(
        4.0e-4,
        "distance of bit and axis up to which the recess takes the bit",
        unit="m",
        minimum=0.0,
        maximum=0.01,
    )
    capture_force: float = parameter(
        5.0, "press that the recess's mouth asks for", unit="N", minimum=0.0, maximum=100.0
    )
    mouth_depth: float = parameter(
        8.0e-4, "depth of the recess's mouth", unit="m", minimum=0.0, maximum=0.01
    )
    recess_depth: float = parameter(
        2.0e-3, "depth of the recess's ground", unit="m", minimum=0.0, maximum=0.01
    )
    flats: int = parameter(6, "flats of bit and recess", minimum=1, maximum=12)
    fit: float = parameter(
        0.09, "angle within which the flats fit", unit="rad", minimum=0.001, maximum=1.0
    )
    wall_stiffness: float = parameter(
        8.0e3, "of the recess's walls", unit="N/m", minimum=0.0, maximum=1.0e6
    )
    wall_damping: float = parameter(
        40.0, "of the recess's walls", unit="N s/m", minimum=0.0, maximum=1.0e4
    )


class Hold(IntEnum):
    """How far the bit is in the recess."""

    FREE = 0
    MOUTH = 1
    ENGAGED = 2


def add_screw(spec: mujoco.MjSpec, config: ScrewConfig) -> None:
    """Put a screw and the ground that a bit stands on into a scene."""
    screw = spec.worldbody.add_body(name=_SCREW, mocap=True)
    cylinder = mujoco.mjtGeom.mjGEOM_CYLINDER
    screw.add_geom(
        name="screw_head",
        type=cylinder,
        size=[config.head_radius, config.head_height / 2, 0.0],
        pos=[0.0, 0.0, -config.head_height / 2],
        rgba=[0.75, 0.76, 0.78, 1.0],
        contype=0,
        conaffinity=0,
    )
    screw.add_geom(
        name="screw_recess",
        type=cylinder,
        size=[0.4 * config.head_radius, 1.0e-4, 0.0],
        rgba=[0.12, 0.12, 0.13, 1.0],
        contype=0,
        conaffinity=0,
    )
    screw.add_geom(
        name="screw_shank",
        type=cylinder,
        size=[0.0015, 0.003, 0.0],
        pos=[0.0, 0.0, -config.head_height - 0.003],
        rgba=[0.70, 0.71, 0.73, 1.0],
        contype=0,
        conaffinity=0,
    )
    ground = spec.worldbody.add_body(name=_GROUND, mocap=True)
    ground.add_geom(
        name=_GROUND_GEOM,
        type=cylinder,
        size=[config.head_radius, config.head_height / 2, 0.0],
        pos=[0.0, 0.0, -config.head_height / 2],
        rgba=[0.0, 0.0, 0.0, 0.0],
        **CONTACT,
    )


class Screw:
    """One screw after the other, in the middle of the target.

    Attributes:
        config: of head and recess.
        thread: of the screw that stands there now.
        hold: how far the bit is in.
        peak_torque: largest torque that the screw was turned with [N m].
        search: way of the bit on the head's face before the recess took it [m].
        let_go: the bit has left the screw after it had turned it; its owner sets it to False.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        config: ScrewConfig,
        thread: ThreadConfig,
        bit: Bit,
        generator: np.random.Generator,
    ) -> None:
        """Take hold of a scene that :func:`add_screw` has prepared."""
        self.config = config
        self.thread = Thread(thread)
        self.hold = Hold.FREE
        self.peak_torque = self.search = 0.0
        self.let_go = False
        self._model, self._data, self._generator = model, data, generator
        self._bit = bit
        self._screw = int(model.body_mocapid[model.body(_SCREW).id])
        self._ground = int(model.body_mocapid[model.body(_GROUND).id])
        self._ground_geom = model.geom(_GROUND_GEOM).id
        self._tool = model.body(_TOOL_BODY).id
        self._dof = int(model.joint(SPINDLE_JOINT).dofadr[0])
        self._axis: FloatArray = data.site_xmat[model.site(_TIP_SITE).id].reshape(3, 3)[:, 2]
        self._own_friction = float(model.dof_frictionloss[self._dof])
        model.dof_solref[self._dof] = _SOLREF
        model.dof_solimp[self._dof] = _SOLIMP
        self._place = np.zeros(3)  # of the target's face
        self._socket = 0.0  # angle at which the flats fit [rad]
        self._last_angle = 0.0

    @property
    def top(self) -> float:
        """Height of the head's face [m]."""
        thread = self.thread
        standing = thread.config.travel - thread.advance
        return float(self._place[2]) + standing + self.config.head_height

    @property
    def friction(self) -> float:
        """Friction of the spindle's joint, with what it turns [N m]."""
        turned = self.thread.friction_torque if self.hold is Hold.ENGAGED else 0.0
        return self._own_friction + turned

    def renew(self, place: FloatArray) -> None:
        """Let a fresh screw stand in the middle of the target's face, at a place [m] (3,)."""
        self.thread = Thread(self.thread.config)
        self.hold = Hold.FREE
        self.peak_torque = self.search = 0.0
        self._place = np.array(place, float)
        self._socket = float(self._generator.uniform(0.0, math.tau / self.config.flats))
        self._show()

    def before_step(self, *, braked: bool) -> None:
        """Act on the tool: recess walls, and the torque that passes through the bit."""
        data = self._data
        if not braked:
            self._model.dof_frictionloss[self._dof] = self.friction
        data.xfrc_applied[self._tool] = 0.0
        if self.hold is Hold.FREE:
            return
        config = self.config
        self._bit.hold_on_axis(self._place[:2], config.wall_stiffness, config.wall_damping)
        if self.hold is Hold.ENGAGED:
            # Friction inside the joint turns nothing else: what the screw takes acts on the tool.
            friction = float(data.qfrc_constraint[self._dof])
            share = 1.0 - self._own_friction / self.friction
            data.xfrc_applied[self._tool, 3:] = share * friction * self._axis

    def after_step(self) -> None:
        """Follow what the step did."""
        angle = float(self._data.qpos[self._dof])
        turned, self._last_angle = angle - self._last_angle, angle
        tip = self._bit.tip
        away = math.dist(tip[:2], self._place[:2])
        if self.hold is Hold.ENGAGED:
            self.thread.turn(turned)
            if turned > 0.0:
                self.peak_torque = max(self.peak_torque, self.thread.friction_torque)
        if self.hold is not Hold.FREE:
            lifted = tip[2] > self.top + 2.0e-4
            if lifted or away > 2.0 * self.config.capture_distance + 1.0e-3:
                self.let_go = self.hold is Hold.ENGAGED
                self.hold = Hold.FREE
        elif away < 4.0 * self.config.head_radius:
            press = self._bit.press_on(self._ground_geom)
            if press > 0.5:
                self.search += self._bit.slid
            if away <= self.config.capture_distance and press >= self.config.capture_force:
                self.hold = Hold.MOUTH
        if self.hold is Hold.MOUTH:
            period = math.tau / self.config.flats
            if abs(math.remainder(angle - self._socket, period)) <= self.config.fit:
                self.hold = Hold.ENGAGED
        self._show()

    def _show(self) -> None:
        x, y, _ = self._place
        top, half = self.top, self.thread.angle / 2.0
        depth = (0.0, self.config.mouth_depth, self.config.recess_depth)[self.hold]
        data = self._data
        data.mocap_pos[self._screw] = (x, y, top)
        data.mocap_quat[self._screw] = (math.cos(half), 0.0, 0.0, -math.sin(half))
        data.mocap_pos[self._ground] = (x, y, top - depth)
