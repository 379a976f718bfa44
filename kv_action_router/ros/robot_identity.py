"""A robot's identity in a node's configuration."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from rclpy.node import Node

from kv_action_router.configuration import Configuration
from kv_action_router.identity import identify

C = TypeVar("C", bound=Configuration)


def identified(node: Node, config: C) -> C:
    """Return the configuration with ``robot_id`` filled in, if the stage has it and leaves it open.

    All nodes of a namespace on one machine arrive at the same identity.

    Raises:
        ConfigError: the configured identity is not a name.
    """
    configured = getattr(config, "robot_id", None)
    if configured is None:
        return config
    found = identify(configured, node.get_namespace())
    node.get_logger().info(f"robot_id is {found.robot_id!r} ({found.source})")
    if found.warning:
        node.get_logger().warning(found.warning)
    return dataclasses.replace(config, robot_id=found.robot_id)
