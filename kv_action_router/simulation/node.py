"""The node ``simulation``: robot, sensors and scene in the place of a driver.

Publishers: ``joint_states``, ``wrench``, ``imu``, ``drive_state``, ``camera/color/image_raw``,
``camera/depth/image_rect_raw``, ``camera/color/camera_info``, ``simulation/truth``.
Subscriptions: ``effort_controller/commands``, ``velocity_controller/commands``,
``position_controller/commands`` (polled by the physics loop), ``horn``.
Service: ``simulation/place_target``. Parameters: ``simulation/config.py``.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, Pose
from rclpy.node import Node
from std_msgs.msg import Bool

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError, RouterError, SimulationError, UnreachableError
from kv_action_router.msg import SimulationTruth
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import parameters, topics
from kv_action_router.ros.process import run
from kv_action_router.ros.sensor_messages import (
    CameraInfoMessage,
    DriveStateMessage,
    ImageMessage,
    ImuMessage,
    JointStateMessage,
    WrenchMessage,
    set_stamp,
)
from kv_action_router.ros.streams import DataPlane
from kv_action_router.simulation.camera import Camera, CameraModel, Snapshot, to_millimeters
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.loop import PhysicsLoop
from kv_action_router.simulation.placement import TargetPlacement
from kv_action_router.simulation.plant import Plant
from kv_action_router.simulation.render import RenderThread
from kv_action_router.simulation.sensors import ImuSensor, JointSensors, WrenchSensor
from kv_action_router.simulation.truth import Contact

BASE_FRAME = "base_link"
TOOL_FRAME = "tool0"
CAMERA_FRAME = "camera_color_optical_frame"

_COMMANDS = (
    (Interface.EFFORT, topics.EFFORT_COMMAND),
    (Interface.VELOCITY, topics.VELOCITY_COMMAND),
    (Interface.POSITION, topics.POSITION_COMMAND),
)


class SimulationNode(Node):
    """Threads: ``physics`` owns the plant, ``camera`` renders, the executor serves requests.

    Invariant: between :meth:`start` and :meth:`shut_down` only the physics thread touches the plant.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__("simulation", **arguments)
        parameters.declare(self, SimulationConfig)
        self.config = config = parameters.load(self, SimulationConfig)
        robot = RobotModel.load(config.robot)
        generator = np.random.default_rng(config.seed)
        self.plant = Plant(config, robot.home, robot.velocity_limit)
        names = self.plant.drives.names
        self._placement = TargetPlacement(config, _Reach(robot), generator)
        self._placements = 0
        self._tip = self.plant.tip  # replaced, never written to, by the physics thread
        self._target = self.plant.target

        model, data = self.plant.model, self.plant.data
        self._joint_sensors = JointSensors(config, len(names), generator)
        self._wrench_sensor = WrenchSensor(model, data, config, generator)
        self._imu_sensor = ImuSensor(model, data, config, generator)
        self._joint_message = JointStateMessage(names, BASE_FRAME)
        self._wrench_message = WrenchMessage(TOOL_FRAME)
        self._imu_message = ImuMessage(TOOL_FRAME, config.acceleration_noise, config.gyro_noise)
        self._drive_message = DriveStateMessage(names)
        self._make_images(config)

        self._joint_publisher = self._publisher(topics.JOINT_STATES)
        self._wrench_publisher = self._publisher(topics.WRENCH)
        self._imu_publisher = self._publisher(topics.IMU)
        self._drive_publisher = self._publisher(topics.DRIVE_STATE)
        self._truth_publisher = self._publisher(topics.SIMULATION_TRUTH)

        self._plane = DataPlane(self)
        self._commands = [(which, self._plane.reader(topic)) for which, topic in _COMMANDS]
        self.create_subscription(
            topics.HORN.type, topics.HORN.name, self._on_horn, topics.HORN.profile()
        )
        self.create_service(
            topics.PLACE_TARGET.type, topics.PLACE_TARGET.name, self._on_place_target
        )
        self._was_braked = True
        self._on_wall_clock = not self.get_parameter("use_sim_time").value
        self._loop = PhysicsLoop(self.plant, config, self, self._failed)
        self._renderer = (
            RenderThread(self.plant.model, config, self._publish_images, self._failed)
            if config.camera_rate
            else None
        )

    def start(self) -> None:
        """Start camera and physics.

        Raises:
            SimulationError: images cannot be rendered here.
        """
        if self._renderer is not None:
            self._renderer.start()
        gc.collect()
        gc.freeze()  # what lives until the end needs no visits by the collector
        self._loop.start()
        self.get_logger().info(
            f"{self.config.robot} simulated with {1e-9 * self._loop.period_ns * 1e3:g} ms ticks; "
            "drives are braked until a command comes"
        )

    def shut_down(self, reason: str) -> None:
        """Leave both threads and the data plane."""
        self.get_logger().info(f"{reason}: simulated time was {self.plant.time:.1f} s")
        self._loop.stop()
        if self._renderer is not None:
            self._renderer.stop()
        self._plane.destroy()

    def _publisher(self, topic: topics.Topic) -> Any:
        return self.create_publisher(topic.type, topic.name, topic.profile())

    def _make_images(self, config: SimulationConfig) -> None:
        camera = CameraModel.of(config)
        size = (camera.height, camera.width)
        self._millimeters = np.zeros(size, np.uint16) if config.depth_encoding == "16UC1" else None
        kind = np.float32 if self._millimeters is None else np.uint16
        self._depth_message = ImageMessage(config.depth_encoding, size, kind, CAMERA_FRAME)
        self._color_message = ImageMessage(
            config.color_encoding, (*size, 3), np.uint8, CAMERA_FRAME
        )
        self._info_message = CameraInfoMessage(
            camera.width, camera.height, camera.matrix, CAMERA_FRAME
        )
        self._depth_publisher = self._publisher(topics.DEPTH_IMAGE)
        self._info_publisher = self._publisher(topics.CAMERA_INFO)
        self._color_publisher = self._publisher(topics.COLOR_IMAGE)

    # --- outputs of the physics loop; on its thread ---------------------------------------

    def stamp_ns(self) -> int:
        """Return the node's time [ns]."""
        if self._on_wall_clock:  # the node's clock gives the same for ten times the price
            return time.time_ns()
        return int(self.get_clock().now().nanoseconds)

    def poll_commands(self, now_ns: int) -> None:
        """Give new commands to the drives, in the order in which they came."""
        newest = []
        for interface, reader in self._commands:
            sample = reader.take_newest()
            if sample is not None:
                newest.append((sample.receipt_ns, interface, sample.message))
        for _, interface, message in sorted(newest, key=_receipt):
            names = [dimension.label for dimension in message.layout.dim]
            try:
                self.plant.drives.command(interface, np.frombuffer(message.data), names, now_ns)
            except InputError as error:
                self.get_logger().error(
                    f"refused: {error} ({self.plant.drives.refused} commands refused so far)",
                    throttle_duration_sec=1.0,
                )

    def joints(self, plant: Plant, stamp_ns: int) -> None:
        """Publish joint states and wrench."""
        sensors, wrench = self._joint_sensors, self._wrench_sensor
        sensors.read(plant.position, plant.velocity, plant.drives.torque)
        self._joint_publisher.publish(
            self._joint_message.fill(stamp_ns, sensors.position, sensors.velocity, sensors.effort)
        )
        wrench.read()
        self._wrench_publisher.publish(
            self._wrench_message.fill(stamp_ns, wrench.force, wrench.torque)
        )

    def imu(self, plant: Plant, stamp_ns: int) -> None:
        """Publish the IMU."""
        sensor = self._imu_sensor
        sensor.read()
        self._imu_publisher.publish(
            self._imu_message.fill(
                stamp_ns, sensor.orientation, sensor.angular_velocity, sensor.linear_acceleration
            )
        )

    def drives(self, plant: Plant, stamp_ns: int) -> None:
        """Publish drive states; note what requests want to know."""
        drives = plant.drives
        self._drive_publisher.publish(
            self._drive_message.fill(
                stamp_ns,
                drives.thermal.temperature,
                drives.current,
                drives.rated_current,
                drives.duty,
                drives.braked,
            )
        )
        self._tip, self._target = plant.tip, plant.target
        if drives.braked and not self._was_braked:
            self.get_logger().warning(
                f"brakes engaged: no command for {self.config.command_timeout * 1e3:g} ms",
                throttle_duration_sec=1.0,
            )
        self._was_braked = drives.braked

    def image(self, snapshot: Snapshot) -> None:
        """Have an image rendered."""
        if self._renderer is not None:
            self._renderer.submit(snapshot)

    def contact(self, contact: Contact, factor: float, stamp_ns: int) -> None:
        """Publish where the target was touched."""
        message = self._truth("contact", stamp_ns, contact.target, contact.tip, factor)
        message.error, message.force = contact.error, contact.force
        self._truth_publisher.publish(message)
        self.get_logger().info(
            f"target touched by {contact.geom}: {contact.error * 1e3:.2f} mm off, {contact.force:.1f} N"
        )

    def behind(self, factor: float, lost: float) -> None:
        """Say that the simulation falls behind."""
        skipped = self._renderer.skipped if self._renderer is not None else 0
        self.get_logger().warning(
            f"falls behind real time: factor {factor:.2f} over the last second, {lost:.2f} s lost and "
            f"{skipped} images skipped since the start",
            throttle_duration_sec=5.0,
        )

    def _failed(self, error: Exception) -> None:
        self.get_logger().error(
            "".join(traceback.format_exception(error)), throttle_duration_sec=1.0
        )

    # --- the camera's thread ----------------------------------------------------------------

    def _publish_images(self, camera: Camera, snapshot: Snapshot) -> None:
        depth: Any = camera.depth
        if self._millimeters is not None:
            to_millimeters(camera.depth, self._millimeters)
            depth = self._millimeters
        stamp = snapshot.stamp_ns
        self._depth_publisher.publish(self._depth_message.fill(stamp, depth))
        self._info_publisher.publish(self._info_message.fill(stamp))
        self._color_publisher.publish(self._color_message.fill(stamp, camera.color))

    # --- requests; on the executor ------------------------------------------------------------

    def _on_horn(self, message: Bool) -> None:
        state = "on" if message.data else "off"
        self.get_logger().info(f"horn {state} at {time.monotonic():.3f} s (steady clock)")

    def _on_place_target(self, request: Any, response: Any) -> Any:
        response.sequence = self._placements
        try:
            response.pose = self._place(request)
        except RouterError as error:
            response.success = False
            response.message = str(error)
            response.pose = _pose(self._target)
        else:
            x, y = response.pose.position.x, response.pose.position.y
            response.success = True
            response.message = f"target at x {x:.3f} m, y {y:.3f} m"
            response.sequence = self._placements
        return response

    def _place(self, request: Any) -> Pose:
        yaw = 0.0
        if request.random:
            place = self._placement.random(self._target, self._tip)
        else:
            at, turn = request.pose.position, request.pose.orientation
            place, yaw = self._placement.requested(
                np.array([at.x, at.y, at.z]),
                np.array([turn.x, turn.y, turn.z, turn.w]),
                self._target,
                self._tip,
            )
        x, y = float(place[0]), float(place[1])
        if not self._loop.call(lambda: self._placed(x, y, yaw)):
            raise SimulationError("the physics loop did not answer within 1 s; target not placed")
        return _pose(self._target, yaw)

    def _placed(self, x: float, y: float, yaw: float) -> None:
        self.plant.place_target(x, y, yaw)
        self._target = self.plant.target
        self._placements += 1
        message = self._truth(
            "placed", self.stamp_ns(), self._target, self.plant.tip, self._loop.factor
        )
        message.error = message.force = float("nan")
        self._truth_publisher.publish(message)

    def _truth(
        self, event: str, stamp_ns: int, target: FloatArray, tip: FloatArray, factor: float
    ) -> SimulationTruth:
        message = SimulationTruth(event=event, target=_pose(target), real_time_factor=factor)
        set_stamp(message.header.stamp, stamp_ns)
        message.header.frame_id = BASE_FRAME
        message.tip = Point(x=float(tip[0]), y=float(tip[1]), z=float(tip[2]))
        message.sequence = self._placements
        return message


class _Reach:
    """Whether the tip, tool down, gets to a position [m] (3,)."""

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot

    def __call__(self, position: FloatArray) -> bool:
        try:
            self._robot.solve_ik(position)
        except UnreachableError:
            return False
        return True


def _receipt(item: tuple[int, Interface, Any]) -> int:
    return item[0]


def _pose(position: FloatArray, yaw: float = 0.0) -> Pose:
    pose = Pose()
    pose.position.x, pose.position.y, pose.position.z = (float(value) for value in position)
    pose.orientation.z, pose.orientation.w = float(np.sin(yaw / 2)), float(np.cos(yaw / 2))
    return pose


def _make_nodes() -> list[Node]:
    node = SimulationNode()
    node.start()
    return [node]


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the exit code."""
    os.environ.setdefault("LP_NUM_THREADS", "1")  # the software renderer leaves a core to others
    sys.setswitchinterval(0.0002)  # the camera's Python must not hold up the physics for 5 ms
    return run(_make_nodes, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
