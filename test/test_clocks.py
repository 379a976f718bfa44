"""Who looks at which clock. Read from the source, so that no new use slips in unseen.

Ages, control, watchdogs and timers run on the steady clock. The system's clock may be set, and the
ROS clock may begin at 0, stand still or go back (K11): both are for stamps and names alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "kv_action_router"
WALL = {
    "caching/store/replacing.py": "names of damaged files, which rise whatever it says",
    "caching/store/store.py": "when a row was quarantined, for people",
    "encoding/node.py": "trace ids that differ from those of an earlier process",
    "ros/injector_commands.py": "stamps of commands, unless another clock is given",
    "ros/stamping.py": "stamps",
    "ros/streams.py": "DDS tells receipts on it; how old a sample is, bounded by the last look",
    "ros/demonstration.py": "when a run began, for its report",
    "simulation/node.py": "stamps of a driver",
}
ROS_TIMERS = {"ros/steady.py": "on the steady clock"}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def attributes(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (object, attribute) of what is looked up on a plain name or on self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            value = node.value
            yield (value.id if isinstance(value, ast.Name) else ""), node.attr


def test_the_systems_clock_is_for_stamps_and_names():
    found = {
        name
        for name, tree in sources()
        if any(
            (owner == "time" and attribute in ("time", "time_ns"))
            or (owner in ("datetime", "date") and attribute in ("now", "utcnow", "today"))
            for owner, attribute in attributes(tree)
        )
    }
    assert found == set(WALL)


def test_timers_run_on_the_steady_clock():
    made = ("create_timer", "create_rate")
    found = {name for name, tree in sources() if any(attr in made for _, attr in attributes(tree))}
    assert found == set(ROS_TIMERS)


def test_a_nodes_clock_makes_stamps_only():
    """``get_clock().now()`` ends as a stamp: ``.to_msg()``, or what stamps are made from."""
    allowed = {"ros/stamping.py", "simulation/node.py"}
    for name, tree in sources():
        if name in allowed:
            continue
        stamped = {
            id(node.func.value.func.value)  # type: ignore[attr-defined]
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "to_msg"
            and isinstance(node.func.value, ast.Call)
            and isinstance(node.func.value.func, ast.Attribute)
            and node.func.value.func.attr == "now"
        }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "get_clock"
            ):
                assert id(node) in stamped, f"{name}:{node.lineno} reads the node's clock"
