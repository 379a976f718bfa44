"""A program that looks at one system after another keeps nothing of those before."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from dds_threads import participants

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from kv_action_router.ros import topics
from kv_action_router.ros.motion_recorder import MotionRecorder
from kv_action_router.ros.running_system import running_system
from kv_action_router.ros.system import System
from kv_action_router.ros.task_client import TaskClient

pytestmark = pytest.mark.dds


def test_no_participant_lives_on_and_is_written_to(ros_domain_id: int, tmp_path: Path):
    """A campaign of faults got slower with every system, until none came up any more."""
    gc.collect()
    gc.disable()  # it would find the leftovers, some day
    before = participants(os.getpid())
    try:
        for _ in range(2):
            with running_system(System("none", (), {}), tmp_path, "looker") as (_, node, executor):
                client = TaskClient(node, executor)
                recorder = MotionRecorder(node, topics.JOINT_STATES, ("elbow_joint",))
                executor.spin_once(timeout_sec=0.1)
                assert participants(os.getpid()) == before + 1
                recorder.stop()
                client.close()
        assert participants(os.getpid()) == before
    finally:
        gc.enable()
