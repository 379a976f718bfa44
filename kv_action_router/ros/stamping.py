"""Where header stamps come from."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.node import Node


def stamp_clock(node: Node) -> Callable[[], int]:
    """Return what tells a node's time [ns], for header stamps alone.

    With ``use_sim_time`` that is simulated time, 0 until somebody publishes it: whoever compares a
    stamp with his own clock has the same one. Without, it is the system's clock, which the node's
    own clock would tell at ten times the price.
    """
    if not node.get_parameter("use_sim_time").value:
        return time.time_ns
    clock = node.get_clock()
    return lambda: int(clock.now().nanoseconds)
