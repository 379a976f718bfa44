"""Timers that go on whatever the clocks do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node


def steady_timer(node: Node, period: float, callback: Callable[[], None]) -> Any:
    """Return a timer on the steady clock; ``period`` in [s].

    A node's own timers follow its clock. With ``use_sim_time`` they stand still until somebody
    publishes /clock, while it is paused, and after it was set back.
    """
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))
