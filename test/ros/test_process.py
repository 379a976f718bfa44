"""How a process of the suite ends."""

from __future__ import annotations

import signal
import sys

import pytest

NODE = """
import rclpy
from kv_action_router.ros.process import run

def make():
    node = rclpy.create_node("ends")
    print("runs", flush=True)
    return [node]

raise SystemExit(run(make))
"""


@pytest.mark.dds
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_until_the_end_change_nothing_of_an_orderly_end(spawn, wait_until, number):
    """`launch` passes on the Ctrl-C that the terminal has sent already: the end hears it twice."""
    process = spawn([sys.executable, "-c", NODE])
    wait_until(lambda: "runs" in process.output(), 20.0, "the start")

    def ended() -> bool:
        process.send(number)
        return not process.running

    wait_until(ended, 5.0, "the end", interval=0.001)
    assert process.wait(1.0) == 0, process.output()
    assert "Traceback" not in process.output()


BUSY = """
import rclpy
from kv_action_router.ros.process import run

class Busy(rclpy.node.Node):
    over = False

    def shut_down(self, reason):
        self.over = True

    def serve(self):
        print("late" if self.over else "serves", flush=True)

def make():
    node = Busy("busy")
    node.create_timer(0.001, node.serve)
    return [node]

raise SystemExit(run(make))
"""


@pytest.mark.dds
def test_nothing_is_served_by_a_node_that_has_let_go_of_everything(spawn, wait_until):
    """A service that was called at that moment ended its process with a traceback."""
    process = spawn([sys.executable, "-c", BUSY])
    wait_until(lambda: "serves" in process.output(), 20.0, "the start")
    process.send(signal.SIGINT)
    assert process.wait(10.0) == 0, process.output()
    assert "late" not in process.output()
