"""What a network is trained to see: a cell of the simulation, and its target's face.

Labels come from the simulator: the pose of the target's body, and which pixels show its shapes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError
from kv_action_router.simulation.config import SimulationConfig, screw_cell
from kv_action_router.simulation.scene import TARGET_BODY, TARGET_GEOM, build_scene
from kv_action_router.simulation.screw import ScrewConfig
from kv_action_router.simulation.thread import ThreadConfig

_SCREW_BODY = "screw"


@dataclass(frozen=True)
class Cell:
    """One kind of target in its surroundings.

    Attributes:
        name: of the cell.
        checkpoint: name of the shipped one that sees this target.
        simulation: of the scene.
        build: makes the scene's model.
        body: the target's; its frame sits at the center of the face, z up.
        face: outline of the face in that frame [m] (k, 2).
        shapes: names of the target's shapes, the colored ones.
        window: width of the close-up [m], about twice the face's.
        fold: turns by 2 pi / fold look the same; 0 = no heading.
        hue: of the target [deg].
        on_top: body -> lowest and highest place above the face's center [m] of what stands there.
    """

    name: str
    checkpoint: str
    simulation: SimulationConfig
    build: Callable[[SimulationConfig], mujoco.MjModel]
    body: str
    face: FloatArray
    shapes: tuple[str, ...]
    window: float
    fold: int
    hue: float
    on_top: Mapping[str, tuple[float, float]]


def circle(radius: float, points: int = 32) -> FloatArray:
    """Return the outline of a round face [m] (points, 2)."""
    angle = np.linspace(0.0, 2.0 * math.pi, points, endpoint=False)
    return radius * np.column_stack((np.cos(angle), np.sin(angle)))


def touch() -> Cell:
    """Return the cell whose target is a colored disc."""
    simulation = SimulationConfig()
    return Cell(
        name="touch",
        checkpoint="disc",
        simulation=simulation,
        build=build_scene,
        body=TARGET_BODY,
        face=circle(simulation.target_radius),
        shapes=(TARGET_GEOM,),
        window=4.0 * simulation.target_radius,
        fold=0,
        hue=308.0,
        on_top={},
    )


def screw() -> Cell:
    """Return the cell whose disc has a screw in its middle: higher at first, then screwed in."""
    simulation, head, thread = screw_cell(), ScrewConfig(), ThreadConfig()
    return dataclasses.replace(
        touch(),
        name="screw",
        simulation=simulation,
        face=circle(simulation.target_radius),
        window=4.0 * simulation.target_radius,
        on_top={_SCREW_BODY: (head.head_height, head.head_height + thread.travel)},
    )


CELLS: Mapping[str, Callable[[], Cell]] = {"touch": touch, "screw": screw}


def cell(name: str) -> Cell:
    """Return a cell by its name.

    Raises:
        InputError: there is none.
    """
    if name not in CELLS:
        raise InputError("cell", f"one of {', '.join(CELLS)}", name)
    return CELLS[name]()


def cells_of(checkpoint: str) -> tuple[Cell, ...]:
    """Return the cells whose target a shipped checkpoint sees, in their order.

    Raises:
        InputError: no cell names it.
    """
    made = [build() for build in CELLS.values()]
    found = tuple(each for each in made if each.checkpoint == checkpoint)
    if not found:
        known = dict.fromkeys(each.checkpoint for each in made)
        raise InputError("target", f"one of {', '.join(known)}", checkpoint)
    return found
