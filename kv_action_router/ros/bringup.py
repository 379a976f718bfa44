"""Starts a robot without the ``launch`` package: ``python3 -m kv_action_router.ros.bringup ur5e``.

Arguments are those of the launch file, written the same way (``sim:=false``); several robots are
separated by ``--``: ``ur5e namespace:=robot1 -- ur5e namespace:=robot2``.
"""

from __future__ import annotations

import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

from kv_action_router.errors import ConfigError
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import SYSTEMS, System

_POLL_S = 0.05


def parse(words: Sequence[str]) -> System:
    """Return the system that a command line such as ``ur5e sim:=true`` describes.

    Raises:
        ConfigError: naming the argument, what it may be, and what it was.
    """
    if not words or words[0] not in SYSTEMS:
        raise ConfigError("robot", f"one of {', '.join(SYSTEMS)}", words[0] if words else "")
    known = Arguments.parameters()
    values: dict[str, Any] = {}
    for word in words[1:]:
        name, separator, text = word.partition(":=")
        if not separator or name not in known:
            raise ConfigError("argument", f"name:=value with a name of {', '.join(known)}", word)
        values[name] = typed(name, text, known[name][0])
    return SYSTEMS[words[0]](Arguments(**values))


def typed(name: str, text: str, default: Any) -> Any:
    """Return the argument's text as its default's type."""
    if not isinstance(default, bool):
        return text
    if text.lower() not in ("true", "false"):
        raise ConfigError(name, "true or false", text)
    return text.lower() == "true"


def usage() -> str:
    """Return the help text."""
    lines = [__doc__ or "", f"robots: {', '.join(SYSTEMS)}", "arguments:"]
    for name, (default, info) in Arguments.parameters().items():
        shown = str(default).lower() if isinstance(default, bool) else default or "''"
        choices = f" ({', '.join(info.choices)})" if info.choices else ""
        lines.append(f"  {name}:={shown}  {info.description}{choices}")
    lines.append("  --show  print the commands instead of running them")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the systems of a command line until SIGINT or SIGTERM."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or "-h" in words or "--help" in words:
        print(usage())
        return 0 if words else 2
    show = "--show" in words
    try:
        systems = [parse(group) for group in _groups([word for word in words if word != "--show"])]
    except ConfigError as error:
        print(f"bringup: {error}", file=sys.stderr)
        return 2
    if show:
        for system in systems:
            for process in system.processes:
                print(shlex.join(process.command()))
        return 0
    return _run(systems)


def _groups(words: Sequence[str]) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            groups.append([])
        else:
            groups[-1].append(word)
    return groups


def _run(systems: Sequence[System]) -> int:
    asked = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: asked.set())
    for system in systems:
        for note in system.notes:
            _say(note)
    supervisor = Supervisor(systems)
    supervisor.start()
    died = False
    while not asked.wait(_POLL_S):
        for death in supervisor.deaths():
            died = True
            _say(f"{death}; {death.consequence}")
        if not supervisor.pids:
            _say("nothing is left running")
            return 1
    _say("ends: stop first, then the rest")
    clean = supervisor.stop(_say)
    return 0 if clean and not died else 1


def _say(text: str) -> None:
    print(f"[bringup] {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
