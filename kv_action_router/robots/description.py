"""A robot's description file: YAML beside its MJCF."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kv_action_router.errors import RobotModelError

ROBOTS = Path(__file__).parent
FRAMES = ("base", "tip", "wrench", "imu")


@dataclass(frozen=True)
class RobotDescription:
    """What a robot's YAML says.

    Attributes:
        source: the YAML file.
        mjcf: MJCF of arm and tool.
        frames: base, tip, wrench and imu -> name in the MJCF.
        outline_margin: by how much the outline sticks out of the collision shapes at most [m].
        home: joint -> position at rest [rad].
        joints: joint -> limits, not yet checked (``limits.parse_limits``).
        fixed: joints of the MJCF that this robot has not: they stand at 0.
    """

    source: Path
    mjcf: Path
    frames: Mapping[str, str]
    outline_margin: float
    home: Mapping[str, float]
    joints: Mapping[str, Any]
    fixed: tuple[str, ...] = ()


def available_robots() -> tuple[str, ...]:
    """Return the names of the robots that come with the package."""
    return tuple(sorted(path.stem for path in ROBOTS.glob("*.yaml")))


def load_description(name: str) -> RobotDescription:
    """Read a robot's description.

    Args:
        name: of a robot that comes with the package, or the path of a YAML file.

    Raises:
        RobotModelError: no such robot, or the file is not complete.
    """
    path = Path(name) if name.endswith((".yaml", ".yml")) else ROBOTS / f"{name}.yaml"
    if not path.is_file():
        raise RobotModelError(
            f"no robot {name!r}: {path} does not exist; robots are {', '.join(available_robots())}"
        )
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise RobotModelError(f"{path}: not YAML: {error}") from error
    if not isinstance(content, Mapping):
        raise RobotModelError(f"{path}: must be a mapping, got {content!r}")
    return _parse(path, content)


def _parse(path: Path, content: Mapping[str, Any]) -> RobotDescription:
    known = ("mjcf", "frames", "outline_margin", "home", "joints")
    for key in known:
        if key not in content:
            raise RobotModelError(f"{path}: {key} is missing")
    allowed = (*known, "fixed")
    unknown = sorted(str(key) for key in set(content) - set(allowed))
    if unknown:
        raise RobotModelError(
            f"{path}: unknown {', '.join(unknown)}; known are {', '.join(allowed)}"
        )
    fixed = content.get("fixed", [])
    if not isinstance(fixed, list) or not all(isinstance(name, str) and name for name in fixed):
        raise RobotModelError(f"{path}: fixed must be a list of joints, got {fixed!r}")
    mjcf = path.parent / str(content["mjcf"])
    if not mjcf.is_file():
        raise RobotModelError(f"{path}: mjcf {mjcf} does not exist")
    for key in ("frames", "home", "joints"):
        if not isinstance(content[key], Mapping):
            raise RobotModelError(f"{path}: {key} must be a mapping, got {content[key]!r}")
    for frame in FRAMES:
        if not isinstance(content["frames"].get(frame), str):
            raise RobotModelError(f"{path}: frames.{frame} must be a name in the MJCF")
    margin = _number(path, "outline_margin", content["outline_margin"])
    if margin < 0.0:
        raise RobotModelError(f"{path}: outline_margin must be at least 0, got {margin}")
    home = {
        str(joint): _number(path, f"home.{joint}", value)
        for joint, value in content["home"].items()
    }
    return RobotDescription(
        path, mjcf, content["frames"], margin, home, content["joints"], tuple(fixed)
    )


def _number(path: Path, field: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise RobotModelError(f"{path}: {field} must be a finite number, got {value!r}")
    return float(value)
