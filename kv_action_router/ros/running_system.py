"""A system that runs as long as a program looks at it, and the node through which it looks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import rclpy
from rclpy.node import Node

from kv_action_router.ros.process import make_executor
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import System


@contextmanager
def running_system(
    system: System, log_folder: Path, node_name: str
) -> Iterator[tuple[Supervisor, Node, Any]]:
    """Start a system; yield its supervisor, and a node of this program with its executor.

    Node and executor have ended afterwards, and then the system's processes.
    """
    with ExitStack() as stack:
        supervisor = Supervisor([system], log_folder)
        stack.callback(supervisor.stop)
        supervisor.start()
        context = rclpy.Context()
        rclpy.init(args=[], context=context)
        stack.callback(context.try_shutdown)
        node = rclpy.create_node(node_name, context=context)
        stack.callback(node.destroy_node)  # else its readers live on and are written to
        executor = make_executor(context)
        executor.add_node(node)
        stack.callback(executor.shutdown)
        yield supervisor, node, executor
