"""Parameters of the simulated robot, its sensors, its drives and its scene."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kv_action_router.configuration import Configuration, parameter
from kv_action_router.errors import ConfigError

CELLS = ("touch", "screw", "station")
DEPTH_ENCODINGS = ("32FC1", "16UC1")
COLOR_ENCODINGS = ("rgb8", "bgr8")


@dataclass(frozen=True)
class SimulationConfig(Configuration):
    """How the robot, its drives, sensors and scene are simulated; poses are in ``base_link``."""

    robot: str = parameter("ur5e", "robot model to simulate (a file of kv_action_router/robots)")
    joint_prefix: str = parameter("", "prefix of every joint name on the topics")
    cell: str = parameter(
        "touch",
        "work: a disc to touch, a disc with a screw in its middle, or that and a second disc with "
        "a connector (the last two with robot ur5e_spindle)",
        choices=CELLS,
    )
    seed: int = parameter(1, "seed of target places and sensor noise", minimum=0)

    scheduling_priority: int = parameter(
        0,
        "SCHED_FIFO priority of the process, physics one above; 0 = normal",
        minimum=0,
        maximum=98,
    )
    physics_step: float = parameter(
        0.002, "longest time step of the physics", unit="s", minimum=0.0005, maximum=0.002
    )
    joint_state_rate: int = parameter(
        500, "rate of joint states", unit="Hz", minimum=50, maximum=1000
    )
    wrench_rate: int = parameter(250, "rate of the wrench", unit="Hz", minimum=50, maximum=1000)
    imu_rate: int = parameter(100, "rate of the IMU", unit="Hz", minimum=100, maximum=1000)
    drive_state_rate: int = parameter(50, "rate of drive states", unit="Hz", minimum=1, maximum=500)
    catch_up: float = parameter(
        0.010,
        "lateness that is made up for; what is beyond is lost",
        unit="s",
        minimum=0.0,
        maximum=0.1,
    )
    warn_below: float = parameter(
        0.95, "real-time factor below which the simulation says so", minimum=0.0, maximum=1.0
    )

    command_timeout: float = parameter(
        0.040, "silence after which the drives stop", unit="s", minimum=0.002, maximum=1.0
    )
    quick_stop: float = parameter(
        8.0,
        "deceleration of the drives' own stop, before the brakes engage; 0 = the brakes alone",
        unit="rad/s^2",
        minimum=0.0,
        maximum=100.0,
    )
    command_delay_limit: float = parameter(
        0.015,  # an effort loop closed over 14 ms more is steady, over 18 ms it swings up
        "drives refuse commands whose stamp says that they are later than the best one by more;"
        " 0 = they take them",
        unit="s",
        minimum=0.0,
        maximum=0.5,
    )
    following_error: float = parameter(
        0.3,
        "drives refuse a position that is farther from the joint",
        unit="rad",
        minimum=0.01,
        maximum=10.0,
    )
    brake_ratio: float = parameter(
        1.5, "torque of a brake over the drive's limit", minimum=1.0, maximum=5.0
    )
    torque_constant: tuple[float, ...] = parameter(
        (12.0, 12.0, 12.0, 9.0, 9.0, 9.0),
        "torque constant of each drive at the joint",
        unit="N m/A",
        minimum=0.001,
    )
    ambient_temperature: float = parameter(
        25.0, "temperature around the drives", unit="degC", minimum=-40.0, maximum=60.0
    )
    initial_temperature: tuple[float, ...] = parameter(
        (35.0, 35.0, 35.0, 35.0, 35.0, 35.0),
        "temperature of each winding at start",
        unit="degC",
        minimum=-40.0,
        maximum=150.0,
    )
    rated_temperature_rise: float = parameter(
        80.0,
        "final warming at rated current, winding at 25 degC",
        unit="K",
        minimum=1.0,
        maximum=150.0,
    )
    thermal_time_constant: float = parameter(
        600.0, "time constant of the winding's warming", unit="s", minimum=1.0
    )
    temperature_coefficient: float = parameter(
        0.0039, "of the winding's resistance", unit="1/K", minimum=0.0, maximum=0.0045
    )
    winding_resistance: float = parameter(
        0.5, "resistance of a winding at 25 degC when new", unit="ohm", minimum=0.001
    )
    age: float = parameter(
        0.0, "age of the drives at start, 0 = new", unit="h", minimum=0.0, maximum=1.0e6
    )
    ageing_speed: float = parameter(
        0.0,
        "hours by which the drives age in an hour of simulation, 0 = they do not",
        minimum=0.0,
        maximum=1.0e6,
    )
    torque_constant_loss: float = parameter(
        0.005,
        "share of the torque constant that is lost in an hour of age",
        unit="1/h",
        minimum=0.0,
        maximum=0.1,
    )
    friction_rise: float = parameter(
        0.03, "growth of the friction in an hour of age", unit="1/h", minimum=0.0, maximum=1.0
    )
    resistance_rise: float = parameter(
        0.002, "growth of the resistance in an hour of age", unit="1/h", minimum=0.0, maximum=1.0
    )

    current_noise: float = parameter(
        0.02, "standard deviation of the drives' currents", unit="A", minimum=0.0, maximum=10.0
    )
    voltage_noise: float = parameter(
        0.02, "standard deviation of the windings' voltages", unit="V", minimum=0.0, maximum=10.0
    )
    position_noise: float = parameter(
        2.0e-5, "standard deviation of joint positions", unit="rad", minimum=0.0, maximum=0.01
    )
    position_resolution: float = parameter(
        0.0, "step of the joint encoders, 0 = exact", unit="rad", minimum=0.0, maximum=0.01
    )
    velocity_noise: float = parameter(
        1.0e-3, "standard deviation of joint velocities", unit="rad/s", minimum=0.0, maximum=0.1
    )
    effort_noise: float = parameter(
        0.05, "standard deviation of joint efforts", unit="N m", minimum=0.0, maximum=5.0
    )
    force_noise: float = parameter(
        0.05, "standard deviation of the wrench's force", unit="N", minimum=0.0, maximum=10.0
    )
    torque_noise: float = parameter(
        0.005, "standard deviation of the wrench's torque", unit="N m", minimum=0.0, maximum=1.0
    )
    force_bias: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0), "constant error of the wrench's force", unit="N"
    )
    torque_bias: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0), "constant error of the wrench's torque", unit="N m"
    )
    acceleration_noise: float = parameter(
        0.05, "standard deviation of the IMU's acceleration", unit="m/s^2", minimum=0.0, maximum=5.0
    )
    gyro_noise: float = parameter(
        0.003, "standard deviation of the IMU's rate", unit="rad/s", minimum=0.0, maximum=1.0
    )

    camera_rate: int = parameter(
        30, "rate of images, 0 = no camera", unit="Hz", minimum=0, maximum=120
    )
    camera_width: int = parameter(320, "image width", unit="px", minimum=32, maximum=1920)
    camera_height: int = parameter(240, "image height", unit="px", minimum=32, maximum=1080)
    camera_field_of_view: float = parameter(
        0.733, "vertical field of view", unit="rad", minimum=0.1, maximum=2.5
    )
    camera_position: tuple[float, ...] = parameter(
        (0.78, 0.0, 0.38), "x, y, z of the camera's optical frame in base_link", unit="m"
    )
    camera_orientation: tuple[float, ...] = parameter(
        (0.66425, 0.66425, -0.24243, -0.24243),
        "quaternion x, y, z, w of the camera's optical frame in base_link",
        minimum=-1.0,
        maximum=1.0,
    )
    camera_error: tuple[float, ...] = parameter(
        (0.0, 0.0, 0.0),
        "by how much the camera really stands beside camera_position, along base_link's axes",
        unit="m",
        minimum=-0.02,
        maximum=0.02,
    )
    camera_blur: float = parameter(
        0.0,
        "standard deviation of the lens's blur, 0 = it is sharp",
        unit="px",
        minimum=0.0,
        maximum=20.0,
    )
    light_change: float = parameter(
        0.0,
        "share by which the light changes with each target, 0 = it stays",
        minimum=0.0,
        maximum=0.6,
    )
    distractors: int = parameter(
        0, "things of other colors that lie on the table", minimum=0, maximum=6
    )
    color_encoding: str = parameter("rgb8", "encoding of color images", choices=COLOR_ENCODINGS)
    depth_encoding: str = parameter(
        "16UC1",
        "depth as float meters (32FC1) or whole millimeters (16UC1)",
        choices=DEPTH_ENCODINGS,
    )
    depth_noise: float = parameter(
        5.0e-4, "standard deviation of depth", unit="m", minimum=0.0, maximum=0.1
    )
    depth_maximum: float = parameter(
        2.0, "depth beyond which nothing is measured", unit="m", minimum=0.2, maximum=60.0
    )

    target_radius: float = parameter(
        0.020, "radius of the target disc", unit="m", minimum=0.005, maximum=0.1
    )
    target_height: float = parameter(
        0.010, "height of the target disc", unit="m", minimum=0.002, maximum=0.1
    )
    target_x: tuple[float, ...] = parameter((0.36, 0.56), "x range of targets", unit="m")
    target_y: tuple[float, ...] = parameter((-0.15, 0.15), "y range of targets", unit="m")
    target_start: tuple[float, ...] = parameter(
        (0.46, 0.0), "x, y of the target at start", unit="m"
    )
    target_clearance: float = parameter(
        0.040,
        "smallest distance of the tip when the target moves",
        unit="m",
        minimum=0.0,
        maximum=0.5,
    )
    approach_height: float = parameter(
        0.060,
        "height above a target that must be reachable too",
        unit="m",
        minimum=0.0,
        maximum=0.5,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, size in (
            ("camera_position", 3),
            ("camera_orientation", 4),
            ("target_start", 2),
            ("camera_error", 3),
            ("force_bias", 3),
            ("torque_bias", 3),
        ):
            if len(getattr(self, name)) != size:
                raise ConfigError(name, f"{size} numbers", getattr(self, name))
        norm = math.sqrt(sum(value * value for value in self.camera_orientation))
        if abs(norm - 1.0) > 1e-3:
            raise ConfigError("camera_orientation", "a unit quaternion", self.camera_orientation)
        for name in ("target_x", "target_y"):
            span = getattr(self, name)
            if len(span) != 2 or span[0] >= span[1]:
                raise ConfigError(name, "two numbers, lower before upper", span)

    @property
    def has_screw(self) -> bool:
        """Whether a screw stands in the target's middle."""
        return self.cell != "touch"

    @property
    def has_connector(self) -> bool:
        """Whether there is a second disc, with a socket and its plug."""
        return self.cell == "station"

    @property
    def step(self) -> float:
        """Time step of the physics [s]: short enough for the fastest stream."""
        return min(
            self.physics_step, 1.0 / max(self.joint_state_rate, self.wrench_rate, self.imu_rate)
        )


def screw_cell(**changes: Any) -> SimulationConfig:
    """Return the configuration of the cell with screws: what its parameters file says too.

    The wrench has a bias, the camera stands a millimeter beside where the encoder thinks it is, the
    light changes, and other things lie about.
    """
    return SimulationConfig(
        **{
            "robot": "ur5e_spindle",
            "cell": "screw",
            "torque_constant": (12.0, 12.0, 12.0, 9.0, 9.0, 9.0, 0.5),
            "initial_temperature": (35.0,) * 7,
            "force_bias": (1.5, -2.0, 3.0),
            "torque_bias": (0.05, -0.08, 0.03),
            "camera_error": (0.0008, -0.0006, 0.0),
            "light_change": 0.25,
            "distractors": 3,
            **changes,
        }
    )


def station_cell(**changes: Any) -> SimulationConfig:
    """Return the configuration of the station: the cell with screws, and a connector beside."""
    return screw_cell(**{"cell": "station", **changes})


def cell_of(name: str, **changes: Any) -> SimulationConfig:
    """Return the configuration of one of ``CELLS``."""
    made: dict[str, Callable[..., SimulationConfig]] = {
        "touch": SimulationConfig,
        "screw": screw_cell,
        "station": station_cell,
    }
    return made[name](**changes)
