"""The station's second work: a plug that stands in its socket, to be pushed home by the bit.

The plug has a mouth for the bit, with a spring clip: near enough to the axis and pressed on it, the
bit drops in, the mouth's walls hold it across, and the clip along. The clip gives way at its own
force, above that of a tug test and far below what a latched plug is held with. A plug that has not
latched comes along until it is back in its pre-lock position.

The plug itself is no body of the physical model: see ``latch.py``. The ground that the bit stands
on moves with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import mujoco
import numpy as np

from kv_action_router.configuration import Configuration, parameter
from kv_action_router.contracts import FloatArray
from kv_action_router.simulation.bit import CONTACT, Bit
from kv_action_router.simulation.latch import Socket, SocketConfig

_BASE, _PLUG, _GROUND, _GROUND_GEOM = "socket", "plug", "plug_ground", "plug_ground_disc"
_HOUSING_RADIUS, _HOUSING_HEIGHT = 5.0e-3, 5.0e-3  # [m] what is seen of the socket
COLOR = (0.05, 0.85, 0.72, 1.0)  # hue 170: far from the disc's, from the arm and from the clutter
HUE = 170.0  # [deg]


@dataclass(frozen=True)
class ConnectorConfig(Configuration):
    """A plug's head, and how the bit gets hold of it."""

    head_radius: float = parameter(
        3.5e-3, "radius of the plug's head", unit="m", minimum=1.0e-4, maximum=0.05
    )
    standing: float = parameter(
        0.010, "height of its face over the disc before it is pushed in", unit="m", minimum=1.0e-3,
        maximum=0.05,
    )  # fmt: skip
    mouth_depth: float = parameter(
        1.0e-3, "depth of the mouth's ground", unit="m", minimum=0.0, maximum=0.01
    )
    capture_distance: float = parameter(
        7.0e-4,
        "distance of bit and axis up to which the mouth takes the bit",
        unit="m",
        minimum=0.0,
        maximum=0.01,
    )
    capture_force: float = parameter(
        4.0, "press that closes the clip", unit="N", minimum=0.0, maximum=100.0
    )
    clip_force: float = parameter(
        17.0, "pull at which the clip lets go", unit="N", minimum=0.0, maximum=500.0
    )
    clip_stiffness: float = parameter(8.0e3, "of the clip", unit="N/m", minimum=1.0, maximum=1.0e6)
    wall_stiffness: float = parameter(
        8.0e3, "of the mouth's walls", unit="N/m", minimum=0.0, maximum=1.0e6
    )
    damping: float = parameter(40.0, "of walls and clip", unit="N s/m", minimum=0.0, maximum=1.0e4)


def add_connector(
    spec: mujoco.MjSpec,
    config: ConnectorConfig,
    socket: SocketConfig,
    disc: dict[str, Any],
) -> None:
    """Put a disc with a socket, its plug, and the ground that a bit stands on into a scene.

    Args:
        spec: of the scene.
        config: of the plug.
        socket: of the socket.
        disc: what the disc's geom is like, but for its color.
    """
    cylinder = mujoco.mjtGeom.mjGEOM_CYLINDER
    seen: dict[str, Any] = {"type": cylinder, "contype": 0, "conaffinity": 0}
    body = spec.worldbody.add_body(name=_BASE, mocap=True)
    body.add_geom(name="socket_disc", rgba=COLOR, **disc)
    body.add_geom(
        name="socket_housing",
        size=[_HOUSING_RADIUS, _HOUSING_HEIGHT / 2, 0.0],
        pos=[0.0, 0.0, _HOUSING_HEIGHT / 2],
        rgba=[0.20, 0.20, 0.22, 1.0],
        **seen,
    )
    plug = spec.worldbody.add_body(name=_PLUG, mocap=True)
    plug.add_geom(
        name="plug_head",
        size=[config.head_radius, socket.travel / 2 + 5.0e-4, 0.0],
        pos=[0.0, 0.0, -socket.travel / 2 - 5.0e-4],
        rgba=[0.88, 0.87, 0.84, 1.0],
        **seen,
    )
    plug.add_geom(
        name="plug_mouth",
        size=[0.4 * config.head_radius, 1.0e-4, 0.0],
        rgba=[0.12, 0.12, 0.13, 1.0],
        **seen,
    )
    stand = spec.worldbody.add_body(name=_GROUND, mocap=True)
    half = config.mouth_depth
    stand.add_geom(
        name=_GROUND_GEOM,
        type=cylinder,
        size=[config.head_radius, half, 0.0],
        pos=[0.0, 0.0, -half],
        rgba=[0.0, 0.0, 0.0, 0.0],
        **CONTACT,
    )


class Connector:
    """One plug and socket after the other, on a disc of its own.

    Attributes:
        config: of the plug.
        socket: that the plug stands in now.
        clipped: the bit is in the plug.
        search: way of the bit on the plug's face before it was in [m].
        let_go: the bit has left the plug; its owner sets it to False.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        config: ConnectorConfig,
        socket: SocketConfig,
        bit: Bit,
    ) -> None:
        """Take hold of a scene that :func:`add_connector` has prepared."""
        self.config = config
        self.socket = Socket(socket)
        self.clipped = self.let_go = False
        self.search = 0.0
        self._data, self._bit = data, bit
        self._step = float(model.opt.timestep)
        self._base, self._plug, self._ground = (
            int(model.body_mocapid[model.body(name).id]) for name in (_BASE, _PLUG, _GROUND)
        )
        self._ground_geom = model.geom(_GROUND_GEOM).id
        self._place = np.zeros(3)  # of the disc's face
        self._pull = 0.0  # [N] of the clip

    @property
    def place(self) -> FloatArray:
        """Center of its disc's face, base frame [m] (3,)."""
        return self._place.copy()

    @property
    def face(self) -> float:
        """Height of the plug's face [m]."""
        return float(self._place[2]) + self.config.standing - self.socket.depth

    def renew(self, place: FloatArray, **changes: Any) -> None:
        """Let a fresh plug stand in a fresh socket, on a disc with its face at ``place`` [m] (3,).

        Args:
            place: center of the disc's face.
            changes: fields of the socket that are other than before, e.g. ``catches=False``.
        """
        self.socket = Socket(replace(self.socket.config, **changes))
        self.clipped = self.let_go = False
        self.search = self._pull = 0.0
        self._place = np.array(place, float)
        self._show()

    def before_step(self) -> None:
        """Act on the bit: the mouth's walls, and the clip."""
        self._pull = 0.0
        if not self.clipped:
            return
        config, bit = self.config, self._bit
        bit.hold_on_axis(self._place[:2], config.wall_stiffness, config.damping)
        lift = float(bit.tip[2]) - (self.face - config.mouth_depth)
        if lift <= 0.0:
            return
        pull = config.clip_stiffness * lift
        if pull > config.clip_force:
            self.clipped, self.let_go = False, True
            return
        self._pull = max(0.0, pull + config.damping * float(bit.speed[2]))
        bit.push(np.array((0.0, 0.0, -self._pull)))

    def after_step(self) -> None:
        """Follow what the step did."""
        config, bit = self.config, self._bit
        away = math.dist(bit.tip[:2], self._place[:2])
        if away > 4.0 * config.head_radius:
            self.clipped = False
            return
        press = bit.press_on(self._ground_geom)
        self.socket.act(press - self._pull, self._step)
        if not self.clipped:
            if press > 0.5:
                self.search += bit.slid
            self.clipped = away <= config.capture_distance and press >= config.capture_force
        self._show()

    def _show(self) -> None:
        x, y, _ = self._place
        face = self.face
        data = self._data
        data.mocap_pos[self._base] = self._place
        data.mocap_pos[self._plug] = (x, y, face)
        data.mocap_pos[self._ground] = (x, y, face - self.config.mouth_depth * self.clipped)
