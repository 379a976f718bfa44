"""What ``reaction.py`` does to a robot, and by what it sees that the robot has reacted. No ROS."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path

WRENCH, WHEEL, HEAT, HAZARD = "wrench", "wheel_jump", "heat", "image_hazard"
KINDS = (WRENCH, WHEEL, HEAT, HAZARD)
FORCE = 100.0  # [N] at the tool: a collision
SPEED_STEP = 30.0  # [rad/s] of a wheel between two samples
HOT, COOL = 90.0, 35.0  # [degC]


@dataclass
class Reactions:
    """Reactions to one kind of event.

    Attributes:
        ms: from the event to the control tick of the first corrective command [ms].
        missed: events without a reaction in time.
        skipped: events that did not take place, since the arm did not move.
    """

    ms: list[float] = field(default_factory=list)
    missed: int = 0
    skipped: int = 0


def write(path: Path, found: dict[str, Reactions]) -> None:
    """Write the reactions to each kind; the folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {kind: dataclasses.asdict(reactions) for kind, reactions in found.items()}
    path.write_text(json.dumps(content))


def read(path: Path) -> dict[str, Reactions]:
    """Return the reactions to each kind; none where the file is not there."""
    if not path.is_file():
        return {}
    return {kind: Reactions(**content) for kind, content in json.loads(path.read_text()).items()}
