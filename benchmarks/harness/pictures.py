"""Image pairs of the simulated cell, rendered once: a target at many places, the arm left out.

The arm is not drawn: it stands where it was rendered, and where the joints do not say that it is,
it would pass for an obstacle.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt
from rclpy.node import Node

from kv_action_router.contracts import Float32Array
from kv_action_router.ros.sensor_publishers import ImagePublishers
from kv_action_router.simulation.box import BOX_BODY, BOX_GEOM
from kv_action_router.simulation.camera import Camera, CameraModel, Snapshot
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.scene import TARGET_BODY, build_scene

ENCODINGS = ("rgb8", "32FC1")
_BOX_AT, _BOX_HALF = (0.46, 0.17), (0.06, 0.04, 0.15)  # [m] 7 cm beside the tool's way
_SPREAD = 0.03  # [m] of the targets around the middle, to each side


class Picture(NamedTuple):
    """A color image (h, w, 3) and its depth (h, w) [m]."""

    color: npt.NDArray[np.uint8]
    depth: Float32Array


def render(count: int, seed: int = 1, *, box: bool = False) -> list[Picture]:
    """Return pictures with the target at random places near the middle of the table.

    Args:
        count: of pictures.
        seed: of the places.
        box: whether a box stands beside them, higher than the tool moves.
    """
    config = SimulationConfig(color_encoding=ENCODINGS[0], depth_encoding=ENCODINGS[1])
    model = build_scene(config)
    _hide_arm(model)
    data = mujoco.MjData(model)
    generator = np.random.default_rng(seed)
    camera = Camera(model, config, generator)
    target = model.body(TARGET_BODY).mocapid[0]
    if box:
        model.geom(BOX_GEOM).size[:] = _BOX_HALF
        data.mocap_pos[model.body(BOX_BODY).mocapid[0]] = (*_BOX_AT, _BOX_HALF[2])
    pictures = []
    for _ in range(count):
        place = np.array(config.target_start) + generator.uniform(-_SPREAD, _SPREAD, 2)
        data.mocap_pos[target, :2] = place
        camera.render(Snapshot.of(data, 0))
        pictures.append(Picture(camera.color.copy(), camera.depth.copy()))
    camera.close()
    return pictures


def publishers(node: Node) -> ImagePublishers:
    """Return publishers for these pictures."""
    config = SimulationConfig()
    model = CameraModel.of(config)
    return ImagePublishers(node, *ENCODINGS, (model.height, model.width), model.matrix)


def _hide_arm(model: mujoco.MjModel) -> None:
    shown = {0, model.body(TARGET_BODY).id, model.body(BOX_BODY).id}
    for geom in range(model.ngeom):
        if int(model.geom_bodyid[geom]) not in shown:
            model.geom_rgba[geom, 3] = 0.0
