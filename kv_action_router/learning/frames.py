"""Labeled frames: random scenes of a cell, each looked at several times.

maker = FrameMaker(cell("touch"))
scene = maker.scene(generator)
frame = maker.frame(scene, generator)       # images, and what the simulator knows of them
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import cv2
import mujoco
import numpy as np
import numpy.typing as npt

from kv_action_router.contracts import FloatArray
from kv_action_router.encoding import face_axis
from kv_action_router.encoding.camera import Camera, Intrinsics, rotation_from_quaternion
from kv_action_router.encoding.images import ColorImage, DepthImage
from kv_action_router.errors import UnreachableError
from kv_action_router.learning import surroundings
from kv_action_router.learning.cells import Cell
from kv_action_router.learning.rendering import LabeledCamera
from kv_action_router.learning.sensor import as_sent, worsen_color, worsen_depth
from kv_action_router.learning.surroundings import Light, Thing
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.camera import Snapshot

ABSENT = 0.12  # share of frames without a target
_OCCLUDED = 0.25  # share of frames with something between target and camera
_AT_HOME, _NEAR_TARGET = 0.35, 0.45  # shares of frames by where the arm is; else it is anywhere
_LEANING = 0.4  # share of frames whose target does not lie level
_LEAN, LEAN_MAXIMUM = 0.03, 0.10  # of its slopes: standard deviation, largest
_FAR_AWAY = np.array([0.0, 0.0, -10.0])
_ROOM = 0.03  # [m] around the region of targets
_SHIFT, _TURN = 0.02, 0.04  # [m], [rad] largest displacement of a scene's camera along an axis
_LEVEL = np.zeros(2)
_SUBPIXEL = 4  # bits of fraction of an outline's corners
_SURFACES = ("table", "mat")


@dataclass(frozen=True)
class Scene:
    """What stays while a robot works.

    Attributes:
        things: that lie about.
        colors: of surfaces.
        camera: as the encoder knows it.
        eye: where it really stands, base frame [m] (3,).
    """

    things: tuple[Thing, ...]
    colors: dict[str, tuple[float, float, float]]
    camera: Camera
    eye: FloatArray


@dataclass(frozen=True)
class Frame:
    """One look, and the truth.

    Attributes:
        color: (height, width, 3) uint8.
        depth: [m] (height, width), NaN = not measured.
        camera: that took it.
        position: center of the target's face, base frame [m] (3,); NaN = there is none.
        yaw: of the target [rad].
        axis: of the target's face, up (3,).
        face: pixels that show its face (height, width).
        visible: share of the face's pixels that do, 0 to 1.
        decoys: places of what must be told from it, base frame [m] (k, 3); of its color first.
    """

    color: ColorImage
    depth: DepthImage
    camera: Camera
    position: FloatArray
    yaw: float
    axis: FloatArray
    face: npt.NDArray[np.bool_]
    visible: float
    decoys: FloatArray


class FrameMaker:
    """Draws scenes and frames of a cell. One thread may use it."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        simulation = cell.simulation
        self._model = cell.build(simulation)
        self._data = mujoco.MjData(self._model)
        self._view = LabeledCamera(self._model, simulation, cell.shapes)
        self._robot = RobotModel.load(simulation.robot)
        joints = [self._model.joint(name).qposadr[0] for name in self._robot.joint_names]
        self._joints = np.array(joints)
        self._mocap = int(self._model.body_mocapid[self._model.body(cell.body).id])
        self._on_top = [
            (int(self._model.body_mocapid[self._model.body(body).id]), span)
            for body, span in cell.on_top.items()
        ]
        self._known = surroundings.Target(
            float(np.abs(cell.face).max()), simulation.target_height, cell.hue
        )
        self._base_color = {
            name: self._model.geom(name).rgba.copy() for name in (*_SURFACES, *cell.shapes)
        }
        self._x = np.array(simulation.target_x) + np.array([-_ROOM, _ROOM])
        self._y = np.array(simulation.target_y) + np.array([-_ROOM, _ROOM])

    def plain_scene(self) -> Scene:
        """Return the scene as the simulation shows it."""
        simulation = self._cell.simulation
        colors = {name: tuple(self._base_color[name][:3].tolist()) for name in _SURFACES}
        camera = self._camera(
            np.array(simulation.camera_position), np.array(simulation.camera_orientation)
        )
        return Scene((), colors, camera, camera.origin + np.array(simulation.camera_error))

    def scene(self, generator: np.random.Generator) -> Scene:
        """Draw a scene."""
        simulation = self._cell.simulation
        wide = np.array([-0.12, 0.12])
        about = surroundings.things(generator, self._known, self._x + wide, self._y + wide)
        colors = {name: surroundings.color(generator, dull=True) for name in _SURFACES}
        position = np.array(simulation.camera_position) + generator.uniform(-_SHIFT, _SHIFT, 3)
        turn = generator.uniform(-_TURN, _TURN, 3)
        small, orientation = np.empty(4), np.empty(4)
        mujoco.mju_axisAngle2Quat(small, turn / (np.linalg.norm(turn) + 1e-12),
                                  float(np.linalg.norm(turn)))  # fmt: skip
        x, y, z, w = simulation.camera_orientation
        mujoco.mju_mulQuat(orientation, small, np.array([w, x, y, z]))
        camera = self._camera(position, np.roll(orientation, -1))
        return Scene(tuple(about), colors, camera, camera.origin)

    def frame(self, scene: Scene, generator: np.random.Generator) -> Frame:
        """Take a random look at a scene."""
        simulation = self._cell.simulation
        absent = generator.uniform() < ABSENT
        place = np.array(
            [generator.uniform(*self._x), generator.uniform(*self._y), simulation.target_height]
        )
        place[2] += max(0.0, generator.uniform(-0.015, 0.015))
        yaw = float(generator.uniform(-math.pi, math.pi))
        arm = self._arm(place, generator)
        extra = []
        if generator.uniform() < _OCCLUDED:
            extra.append(surroundings.occluder(generator, place, scene.camera.origin))
        paint = surroundings.near_hue(generator, self._cell.hue)
        sight = surroundings.light(generator)
        raised = float(generator.uniform()) if self._on_top else 1.0
        slopes = np.clip(_LEAN * generator.standard_normal(2), -LEAN_MAXIMUM, LEAN_MAXIMUM)
        slopes *= generator.uniform() < _LEANING
        frame = self.look(
            scene, _FAR_AWAY if absent else place, yaw, arm,
            paint=paint, light=sight, extra=extra, raised=raised, slopes=slopes,
        )  # fmt: skip
        return self._worsened(frame, generator)

    def plain_frame(self, scene: Scene, generator: np.random.Generator) -> Frame:
        """Take a look as the simulation does: its own light and color, the arm at rest."""
        simulation = self._cell.simulation
        low, high = zip(simulation.target_x, simulation.target_y, strict=True)
        place = np.array([*generator.uniform(low, high), simulation.target_height])
        yaw = float(generator.uniform(-math.pi, math.pi))
        frame = self.look(scene, place, yaw, self.home)
        return replace(frame, depth=as_sent(generator, frame.depth, simulation.depth_noise))

    def pair(
        self, scene: Scene, distance: float, generator: np.random.Generator
    ) -> tuple[Frame, Frame]:
        """Take two looks with all of the target in view, its places ``distance`` [m] apart."""
        simulation = self._cell.simulation
        place = np.array(
            [generator.uniform(*self._x), generator.uniform(*self._y), simulation.target_height]
        )
        angle = generator.uniform(-math.pi, math.pi)
        other = place + distance * np.array([math.cos(angle), math.sin(angle), 0.0])
        paint = surroundings.near_hue(generator, self._cell.hue)
        looks = [
            self.look(
                scene, where, 0.0, self.home, paint=paint, light=surroundings.light(generator)
            )
            for where in (place, other)
        ]
        first, second = (self._worsened(frame, generator) for frame in looks)
        return first, second

    def look(
        self,
        scene: Scene,
        position: FloatArray,
        yaw: float,
        arm: FloatArray,
        *,
        paint: tuple[float, float, float] | None = None,
        light: Light | None = None,
        extra: list[Thing] | None = None,
        raised: float = 1.0,
        slopes: FloatArray = _LEVEL,
    ) -> Frame:
        """Return the exact images of a target at a position, and what is true of them.

        Args:
            scene: that is looked at.
            position: center of the target's face, base frame [m] (3,).
            yaw: of the target [rad].
            arm: joint positions [rad] (n,).
            paint: the target's color; None = its own.
            light: None = the simulation's.
            extra: what else stands there.
            raised: where what stands on the target is between its lowest and highest place.
            slopes: of the target's face along x and y (2,).
        """
        for name, shade in scene.colors.items():
            self._model.geom(name).rgba[:3] = shade
        for name in self._cell.shapes:
            own = self._base_color[name][:3]
            self._model.geom(name).rgba[:3] = own if paint is None else paint
        data, view = self._data, self._view
        data.qpos[self._joints] = arm
        data.mocap_pos[self._mocap] = position
        turned = face_axis.orientation(float(slopes[0]), float(slopes[1]), yaw)
        up = face_axis.axis(turned)
        data.mocap_quat[self._mocap] = np.roll(turned, 1)
        camera = scene.camera
        for mocap, (low, high) in self._on_top:
            data.mocap_pos[mocap] = position + (low + raised * (high - low)) * up
            data.mocap_quat[mocap] = np.roll(turned, 1)
        view.stand(scene.eye, camera.orientation)
        view.things, view.light = [*scene.things, *(extra or ())], light
        view.render(Snapshot.of(data))
        color, depth = view.color.copy(), view.depth.copy()
        outline = self._outline(camera, position, turned)
        face = view.target_pixels() & (outline > 0)
        area = int(np.count_nonzero(outline))
        there = position[2] > -1.0
        decoys = sorted((thing for thing in scene.things if thing.decoy), key=lambda d: -d.decoy)
        return Frame(
            color,
            depth,
            camera,
            position.copy() if there else np.full(3, np.nan),
            yaw,
            up,
            face,
            int(np.count_nonzero(face)) / area if area and there else 0.0,
            np.array([decoy.position for decoy in decoys]).reshape(-1, 3),
        )

    @property
    def home(self) -> FloatArray:
        """Joint positions of the arm at rest [rad] (n,)."""
        return self._robot.home

    def over(self, tip: FloatArray) -> FloatArray | None:
        """Return joint positions with the tool down at ``tip`` [m] (3,); None = out of reach."""
        try:
            return self._robot.solve_ik(tip, None, self._robot.home)
        except UnreachableError:
            return None

    def close(self) -> None:
        """Free the renderer."""
        self._view.close()

    @staticmethod
    def _worsened(frame: Frame, generator: np.random.Generator) -> Frame:
        color = worsen_color(generator, frame.color)
        return replace(frame, color=color, depth=worsen_depth(generator, frame.depth))

    def _arm(self, target: FloatArray, generator: np.random.Generator) -> FloatArray:
        draw = generator.uniform()
        if draw < _AT_HOME:
            return self.home
        near = draw < _AT_HOME + _NEAR_TARGET
        reach, height = (0.04, 0.08) if near else (0.2, 0.2)
        above = np.array([*generator.uniform(-reach, reach, 2), generator.uniform(0.003, height)])
        found = self.over(target + above)
        return self.home if found is None else found

    def _camera(self, position: FloatArray, orientation: FloatArray) -> Camera:
        view = self._view.model
        intrinsics = Intrinsics.from_matrix(view.width, view.height, view.matrix.ravel().tolist())
        return Camera(intrinsics, position.tolist(), orientation.tolist())

    def _outline(
        self, camera: Camera, position: FloatArray, turned: FloatArray
    ) -> npt.NDArray[np.uint8]:
        face = self._cell.face
        corners = np.column_stack((face, np.zeros(len(face))))
        pixels = camera.project(corners @ rotation_from_quaternion(turned).T + position)
        drawn = np.zeros(camera.shape, np.uint8)
        if np.isfinite(pixels).all() and np.abs(pixels).max() < 1e5:
            fixed = np.rint(pixels * (1 << _SUBPIXEL)).astype(np.int32)
            cv2.fillPoly(drawn, [fixed], 1, shift=_SUBPIXEL)
        return drawn
