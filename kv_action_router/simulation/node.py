"""The node ``simulation``: robot, sensors and scene in the place of a driver.

Publishers: ``joint_states``, ``wrench``, ``imu``, ``drive_state``, ``simulation/truth``, and
``simulation/scene``, from which the node ``camera`` makes images.
Subscriptions: ``effort_controller/commands``, ``velocity_controller/commands``,
``position_controller/commands`` (polled by the physics loop), ``horn``,
``simulation/blocked_joint``.
Services: ``simulation/place_target``, ``simulation/place_box``.
Parameters: ``simulation/config.py``.
"""

from __future__ import annotations

import gc
import sys
import time
import traceback
from typing import Any

import numpy as np
from geometry_msgs.msg import Pose
from rclpy.node import Node
from std_msgs.msg import Bool

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError, RouterError, SimulationError
from kv_action_router.msg import SimulationTruth
from kv_action_router.robots.model import RobotModel
from kv_action_router.ros import parameters, topics
from kv_action_router.ros.box_service import BoxService
from kv_action_router.ros.drive_commands import DriveCommands
from kv_action_router.ros.process import run
from kv_action_router.ros.sensor_messages import pose_message, truth_message
from kv_action_router.ros.sensor_publishers import (
    BASE_FRAME,
    RobotPublishers,
    ScenePublisher,
    create,
)
from kv_action_router.ros.streams import DataPlane
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.connector import Connector
from kv_action_router.simulation.loop import PhysicsLoop
from kv_action_router.simulation.placement import Reach, TargetPlacement
from kv_action_router.simulation.plant import Plant
from kv_action_router.simulation.screw import Screw
from kv_action_router.simulation.sensors import (
    DriveSensors,
    ImuSensor,
    JointSensors,
    WrenchSensor,
)
from kv_action_router.simulation.truth import Contact


class SimulationNode(Node):
    """Threads: ``physics`` owns the plant, the executor serves requests.

    Invariant: between :meth:`start` and :meth:`shut_down` only the physics thread touches the
    plant.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__("simulation", **arguments)
        parameters.declare(self, SimulationConfig)
        self.config = config = parameters.load(self, SimulationConfig)
        robot = RobotModel.load(config.robot)
        generator = np.random.default_rng(config.seed)
        self.plant = Plant(config, robot.home, robot.velocity_limit)
        names = self.plant.drives.names
        self._placement = TargetPlacement(config, Reach(robot), generator, self.plant.box.covers)
        self._placements = 0
        self._tip = self.plant.tip  # replaced, never written to, by the physics thread
        self._target = self.plant.target

        model, data = self.plant.model, self.plant.data
        self._joint_sensors = JointSensors(config, len(names), generator)
        self._wrench_sensor = WrenchSensor(model, data, config, generator)
        self._drive_sensors = DriveSensors(config, len(names))
        self._imu_sensor = ImuSensor(model, data, config, generator)
        self._outputs = RobotPublishers(self, names, config.acceleration_noise, config.gyro_noise)
        self._scene = ScenePublisher(self, model.nq, model.nmocap, model.nlight)
        self._truth_publisher = create(self, topics.SIMULATION_TRUTH)

        self._plane = DataPlane(self)
        self._commands = DriveCommands(self._plane)
        self.create_subscription(
            topics.HORN.type, topics.HORN.name, self._on_horn, topics.HORN.profile()
        )
        self.create_subscription(
            topics.BLOCKED_JOINT.type,
            topics.BLOCKED_JOINT.name,
            self._on_blocked_joint,
            topics.BLOCKED_JOINT.profile(),
        )
        self.create_service(
            topics.PLACE_TARGET.type, topics.PLACE_TARGET.name, self._on_place_target
        )
        self._was_braked = True
        self._braked = {state: (state,) * len(names) for state in (False, True)}
        self._on_wall_clock = not self.get_parameter("use_sim_time").value
        self._loop = PhysicsLoop(self.plant, config, self, self._failed)
        BoxService(self, self.plant, self._loop.call)

    def _on_blocked_joint(self, message: Any) -> None:
        def block() -> None:
            try:
                self.plant.block(message.data)
            except InputError as error:
                self.get_logger().error(str(error))

        self._loop.call(block)

    def start(self) -> None:
        """Start the physics."""
        gc.collect()
        gc.freeze()  # what lives until the end needs no visits by the collector
        self._loop.start()
        self.get_logger().info(
            f"{self.config.robot} simulated with {1e-9 * self._loop.period_ns * 1e3:g} ms ticks; "
            "drives are braked until a command comes"
        )

    def shut_down(self, reason: str) -> None:
        """Leave the thread, the streams and the data plane."""
        self.get_logger().info(f"{reason}: simulated time was {self.plant.time:.1f} s")
        self._loop.stop()
        self._outputs.close()
        self._scene.close()
        self._plane.destroy()

    # --- outputs of the physics loop; on its thread ---------------------------------------

    def stamp_ns(self) -> int:
        """Return the node's time [ns]."""
        # Without use_sim_time the node's clock gives the same for ten times the price; with it, it
        # stands at 0 until somebody publishes /clock.
        simulated = 0 if self._on_wall_clock else int(self.get_clock().now().nanoseconds)
        return simulated or time.time_ns()

    def poll_commands(self, now_ns: int) -> None:
        """Give new commands to the drives, in the order in which they came."""
        drives = self.plant.drives
        for interface, data in self._commands.take(drives.interface):
            try:
                values, names, sent_us = self._commands.read(data)
                drives.command(interface, values, names, now_ns, sent_us)
            except InputError as error:
                self.get_logger().error(
                    f"refused: {error} ({drives.refused} commands refused so far)",
                    throttle_duration_sec=1.0,
                )

    def joints(self, plant: Plant, stamp_ns: int) -> None:
        """Publish joint states."""
        joints = self._joint_sensors
        joints.read(plant.position, plant.velocity, plant.drives.torque)
        self._outputs.joints(stamp_ns, joints.position, joints.velocity, joints.effort)

    def wrench(self, stamp_ns: int) -> None:
        """Publish the wrench."""
        self._wrench_sensor.read()
        self._outputs.wrench(stamp_ns, self._wrench_sensor.wrench)

    def imu(self, stamp_ns: int) -> None:
        """Publish the IMU."""
        self._imu_sensor.read()
        self._outputs.imu(stamp_ns, self._imu_sensor.reading)

    def drives(self, plant: Plant, stamp_ns: int) -> None:
        """Publish drive states; note what requests want to know."""
        drives, measured = plant.drives, self._drive_sensors
        measured.read(drives.current, plant.voltage())
        self._outputs.drives(
            stamp_ns,
            drives.thermal.temperature,
            measured.current,
            drives.rated_current,
            drives.duty,
            self._braked[drives.stopped],
            measured.voltage,
        )
        self._tip, self._target = plant.tip, plant.target
        if drives.braked and not self._was_braked:
            self.get_logger().warning(
                f"brakes engaged: no command for {self.config.command_timeout * 1e3:g} ms",
                throttle_duration_sec=1.0,
            )
        self._was_braked = drives.braked

    def scene(self, plant: Plant, stamp_ns: int) -> None:
        """Publish what an image is made from."""
        data, lights = plant.data, plant.model.light_diffuse
        places = data.mocap_pos, data.mocap_quat
        self._scene.publish(stamp_ns, data.qpos, *places, lights, plant.box.half_size)

    def contact(self, contact: Contact, factor: float, stamp_ns: int) -> None:
        """Publish where the target was touched."""
        message = truth_message("contact", stamp_ns, contact.target, contact.tip, BASE_FRAME)
        message.error, message.force = contact.error, contact.force
        self._tell(message, factor)
        self.get_logger().info(
            f"target touched by {contact.geom} {contact.error * 1e3:.2f} mm off its center with "
            f"{contact.force:.1f} N"
        )

    def screw(self, screw: Screw, factor: float, stamp_ns: int) -> None:
        """Publish how a screw was driven."""
        message = truth_message("screw", stamp_ns, self._target, self.plant.tip, BASE_FRAME)
        message.final_torque, message.search = screw.peak_torque, screw.search
        message.advance = screw.thread.advance
        self._tell(message, factor)
        self.get_logger().info(
            f"screw driven {screw.thread.advance * 1e3:.2f} mm in, with {screw.peak_torque:.2f} N m"
            f" at last; searched for {screw.search * 1e3:.1f} mm"
        )

    def plug(self, connector: Connector, factor: float, stamp_ns: int) -> None:
        """Publish how a plug stands in its socket."""
        message = truth_message("plug", stamp_ns, connector.place, self.plant.tip, BASE_FRAME)
        socket = connector.socket
        message.insertion, message.insertion_force = socket.depth, socket.peak_force
        message.latched, message.search = socket.latched, connector.search
        self._tell(message, factor)
        self.get_logger().info(
            f"plug left {socket.depth * 1e3:.2f} mm in its socket,"
            f" {'latched' if socket.latched else 'not latched'};"
            f" pushed with {socket.peak_force:.1f} N at most"
        )

    def _tell(self, message: SimulationTruth, factor: float) -> None:
        """Publish what has happened, and simulated over real time."""
        message.real_time_factor, message.sequence = factor, self._placements
        self._truth_publisher.publish(message)

    def unscheduled(self, refusal: str) -> None:
        """Say that the simulation has no real-time priority."""
        self.get_logger().warning(refusal)

    def behind(self, factor: float, lost: float) -> None:
        """Say that the simulation falls behind."""
        self.get_logger().warning(
            f"falls behind real time: factor {factor:.2f} over the last second, {lost:.2f} s lost "
            "since the start",
            throttle_duration_sec=5.0,
        )

    def _failed(self, error: Exception) -> None:
        self.get_logger().error(
            "".join(traceback.format_exception(error)), throttle_duration_sec=1.0
        )

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
            response.pose = pose_message(self._target)
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
        beside = None
        if self.plant.connector is not None:
            beside = self._placement.random(self._target, self._tip, place)
        x, y = float(place[0]), float(place[1])
        if not self._loop.call(lambda: self._placed(x, y, yaw, beside)):
            raise SimulationError("the physics loop did not answer within 1 s; target not placed")
        return pose_message(self._target, yaw)

    def _placed(self, x: float, y: float, yaw: float, beside: FloatArray | None) -> None:
        if beside is not None:
            self.plant.place_connector(*beside.tolist())
        self.plant.place_target(x, y, yaw)
        self._target = self.plant.target
        self._placements += 1
        message = truth_message("placed", self.stamp_ns(), self._target, self.plant.tip, BASE_FRAME)
        self._tell(message, self._loop.factor)


def _make_nodes() -> list[Node]:
    node = SimulationNode()
    node.start()
    return [node]


def main(arguments: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; return the exit code."""
    sys.setswitchinterval(0.0002)  # requests must not hold up the physics for 5 ms
    return run(_make_nodes, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
