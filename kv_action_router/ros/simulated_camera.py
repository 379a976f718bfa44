"""The node ``camera``: an RGB-D camera's driver, which renders what the simulation says is where.

Publishers: ``camera/color/image_raw``, ``camera/depth/image_rect_raw``,
``camera/color/camera_info``. Subscriptions: ``simulation/scene``.
Parameters: ``simulation/config.py``.

A process of its own, as on a robot: rendering takes half a core, and in the simulation's process it
would either hold up the physics or, with its priority, everything that reads the images.
"""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

import numpy as np
from rclpy.node import Node

from kv_action_router.errors import InputError, SimulationError
from kv_action_router.msg import SceneState
from kv_action_router.ros import parameters, topics
from kv_action_router.ros.conversions.fields import stamp_from_msg
from kv_action_router.ros.process import run
from kv_action_router.ros.sensor_publishers import ImagePublishers
from kv_action_router.simulation.box import BOX_GEOM
from kv_action_router.simulation.camera import Camera, CameraModel, Snapshot, to_millimeters
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.scene import build_scene

_HINT = "a software renderer is needed: apt-get install libegl1 libgl1-mesa-dri, and MUJOCO_GL=egl"


class CameraNode(Node):
    """Draws each scene when it comes; one that comes while another is drawn waits, the last only.

    Invariant: rendering, and everything else, happens on the executor's thread.
    """

    def __init__(self, **arguments: Any) -> None:
        """Make the renderer.

        Raises:
            SimulationError: images cannot be rendered here; the message says what to install.
        """
        super().__init__("camera", **arguments)
        parameters.declare(self, SimulationConfig)
        config = parameters.load(self, SimulationConfig)
        self._scene = build_scene(config)
        self._box = self._scene.geom(BOX_GEOM).id
        try:
            self._camera = Camera(self._scene, config, np.random.default_rng(config.seed + 1))
        except Exception as error:
            raise SimulationError(f"camera cannot render: {error}; {_HINT}") from error
        view = CameraModel.of(config)
        size = (view.height, view.width)
        self._images = ImagePublishers(
            self, config.color_encoding, config.depth_encoding, size, view.matrix
        )
        self._millimeters = np.zeros(size, np.uint16) if config.depth_encoding == "16UC1" else None
        topic = topics.SCENE_STATE
        self.create_subscription(topic.type, topic.name, self._on_scene, topic.profile())

    def _on_scene(self, message: SceneState) -> None:
        try:
            snapshot = self._taken(message, stamp_from_msg(message.header.stamp))
            self._camera.render(snapshot)
        except InputError as error:
            self.get_logger().error(str(error), throttle_duration_sec=1.0)
            return
        except Exception as error:  # one bad image must not end the stream
            self.get_logger().error(
                "".join(traceback.format_exception(error)), throttle_duration_sec=1.0
            )
            return
        depth: Any = self._camera.depth
        if self._millimeters is not None:
            to_millimeters(self._camera.depth, self._millimeters)
            depth = self._millimeters
        self._images.publish(snapshot.stamp_ns, self._camera.color, depth)

    def _taken(self, message: SceneState, stamp_ns: int) -> Snapshot:
        """Return what is where; lamps and the box change the scene itself.

        Raises:
            InputError: the scene is another one than this camera's.
        """
        scene = self._scene
        told = len(message.joints), len(message.positions) // 3, len(message.lights) // 3
        own = scene.nq, scene.nmocap, scene.nlight
        if told != own:
            raise InputError(
                "scene",
                f"of {own[0]} joints, {own[1]} things and {own[2]} lamps, as robot, cell and"
                " distractors say here (set them for both nodes)",
                told,
            )
        scene.light_diffuse[:] = np.reshape(message.lights, scene.light_diffuse.shape)
        scene.geom_size[self._box] = message.box
        return Snapshot(
            np.asarray(message.joints),
            np.reshape(message.positions, (-1, 3)),
            np.reshape(message.orientations, (-1, 4)),
            stamp_ns,
        )

    def shut_down(self, reason: str) -> None:
        """Free the renderer and the publishers."""
        self.get_logger().info(reason)
        self._camera.close()
        self._images.close()


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the exit code."""
    os.environ.setdefault("LP_NUM_THREADS", "1")  # the software renderer leaves a core to others
    return run(lambda: [CameraNode()], arguments)


if __name__ == "__main__":
    sys.exit(main())
