"""Every topic, service and action: name, type and profile, declared once.

Names are relative, so that any namespace works; ``~/`` ones belong to the node that is named. The
table in ``docs/interfaces.md`` is compared with this file by a test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from sensor_msgs.msg import CameraInfo, Image, Imu, JointState
from std_msgs.msg import Bool, Float64MultiArray, String
from std_srvs.srv import Trigger

from kv_action_router.action import ExecuteTask
from kv_action_router.msg import (
    CacheMatch,
    CacheStatistics,
    DriveState,
    EntryUpdate,
    ExecutionFeedback,
    ExecutionValue,
    FailureEvent,
    Heartbeat,
    LoopStatistics,
    ObstacleSpheres,
    SceneState,
    SimulationTruth,
    StageCondition,
    Stop,
    TaskKey,
    TaskState,
    TrajectoryChunk,
)
from kv_action_router.ros import qos
from kv_action_router.srv import (
    GetEntry,
    InsertEntry,
    InterruptExecution,
    InvalidateCache,
    LimitSpeed,
    ListDomains,
    ListEntries,
    PlaceBox,
    PlaceTarget,
    QueryCache,
    ResumeExecution,
    SaveCache,
    SetDomainIsolation,
)

NODES = (
    "task_key_encoder",
    "cache_manager",
    "behavior_synthesizer",
    "actuator_injector",
    "failure_monitor",
)


@dataclass(frozen=True)
class Topic:
    """A topic: its name, message type and the profile that its publisher offers."""

    name: str
    type: type
    profile: Callable[[], QoSProfile]


@dataclass(frozen=True)
class Service:
    """A service or action: name relative to the namespace, type, and the node that serves it."""

    name: str
    type: type
    node: str


TASK_KEY = Topic("task_key", TaskKey, qos.decision_stream)
CACHE_MATCH = Topic("cache_match", CacheMatch, qos.decision_stream)
OBSTACLE_SPHERES = Topic("obstacle_spheres", ObstacleSpheres, qos.obstacle_stream)
TRAJECTORY_CHUNK = Topic("trajectory_chunk", TrajectoryChunk, qos.chunk_stream)
EXECUTION_FEEDBACK = Topic("execution_feedback", ExecutionFeedback, qos.feedback_stream)
EXECUTION_VALUE = Topic("execution_value", ExecutionValue, qos.latched)
ENTRY_UPDATE = Topic("entry_update", EntryUpdate, qos.event)
TASK_STATE = Topic("task_state", TaskState, qos.latched)
SCENE = Topic("scene", String, qos.latched)
CONDITION = Topic("condition", StageCondition, qos.event)
FAILURE_EVENT = Topic("failure_event", FailureEvent, qos.event)
STOP = Topic("stop", Stop, qos.latched)
LOOP_STATISTICS = Topic("actuator_injector/loop_statistics", LoopStatistics, qos.latched)
STATISTICS = Topic("cache_manager/statistics", CacheStatistics, qos.latched)
DIAGNOSTICS = Topic("/diagnostics", DiagnosticArray, qos.diagnostics)
HEARTBEATS = {node: Topic(f"heartbeat/{node}", Heartbeat, qos.heartbeat) for node in NODES}

JOINT_STATES = Topic("joint_states", JointState, qos.driver)
IMU = Topic("imu", Imu, qos.driver)
WRENCH = Topic("wrench", WrenchStamped, qos.driver)
ODOMETRY = Topic("odom", Odometry, qos.driver)
DRIVE_STATE = Topic("drive_state", DriveState, qos.driver)
COLOR_IMAGE = Topic("camera/color/image_raw", Image, qos.driver)
DEPTH_IMAGE = Topic("camera/depth/image_rect_raw", Image, qos.driver)
CAMERA_INFO = Topic("camera/color/camera_info", CameraInfo, qos.driver)
HORN = Topic("horn", Bool, qos.event)
EFFORT_COMMAND = Topic("effort_controller/commands", Float64MultiArray, qos.command)
VELOCITY_COMMAND = Topic("velocity_controller/commands", Float64MultiArray, qos.command)
POSITION_COMMAND = Topic("position_controller/commands", Float64MultiArray, qos.command)
FAULT = Topic("fault_proxy/fault", String, qos.event)
BLOCKED_JOINT = Topic("simulation/blocked_joint", String, qos.event)
SIMULATION_TRUTH = Topic("simulation/truth", SimulationTruth, qos.event)
SCENE_STATE = Topic("simulation/scene", SceneState, qos.driver)

EXECUTE_TASK = Service("execute_task", ExecuteTask, "behavior_synthesizer")
INTERRUPT = Service("behavior_synthesizer/interrupt", InterruptExecution, "behavior_synthesizer")
LIMIT_SPEED = Service("behavior_synthesizer/limit_speed", LimitSpeed, "behavior_synthesizer")
RESUME = Service("behavior_synthesizer/resume", ResumeExecution, "behavior_synthesizer")
QUERY = Service("cache_manager/query", QueryCache, "cache_manager")
INSERT_ENTRY = Service("cache_manager/insert_entry", InsertEntry, "cache_manager")
GET_ENTRY = Service("cache_manager/get_entry", GetEntry, "cache_manager")
LIST_ENTRIES = Service("cache_manager/list_entries", ListEntries, "cache_manager")
LIST_DOMAINS = Service("cache_manager/list_domains", ListDomains, "cache_manager")
INVALIDATE = Service("cache_manager/invalidate", InvalidateCache, "cache_manager")
SET_DOMAIN_ISOLATION = Service(
    "cache_manager/set_domain_isolation", SetDomainIsolation, "cache_manager"
)
SAVE = Service("cache_manager/save", SaveCache, "cache_manager")
CALIBRATE_DRIVES = Service("failure_monitor/calibrate_drives", Trigger, "failure_monitor")
RELEASE_STOP = Service("actuator_injector/release_stop", Trigger, "actuator_injector")
PLACE_BOX = Service("simulation/place_box", PlaceBox, "simulation")
PLACE_TARGET = Service("simulation/place_target", PlaceTarget, "simulation")


def topics() -> list[Topic]:
    """Return every topic that is declared here."""
    return [value for value in globals().values() if isinstance(value, Topic)] + list(
        HEARTBEATS.values()
    )


def services() -> list[Service]:
    """Return every service and action that is declared here."""
    return [value for value in globals().values() if isinstance(value, Service)]
