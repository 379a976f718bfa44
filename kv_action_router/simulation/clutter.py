"""What makes seeing harder: light that changes, and things of other colors on the table."""

from __future__ import annotations

import mujoco
import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.simulation.config import SimulationConfig

_NAME = "distractor_"
_COLORS = (
    (0.95, 0.45, 0.05, 1.0),
    (0.10, 0.35, 0.85, 1.0),
    (0.15, 0.65, 0.25, 1.0),
    (0.85, 0.80, 0.10, 1.0),
    (0.45, 0.10, 0.10, 1.0),
    (0.30, 0.30, 0.60, 1.0),
)
_HALF_HEIGHT = 0.004  # [m] low enough that the tool passes over them
_APART = 0.085  # [m] from the middle of any work
_ATTEMPTS = 50


def add_clutter(spec: mujoco.MjSpec, count: int) -> None:
    """Put things into the scene; they are to be seen, nothing touches them."""
    for index in range(count):
        body = spec.worldbody.add_body(
            name=f"{_NAME}{index}", mocap=True, pos=[-0.6, 0.1 * index, _HALF_HEIGHT]
        )
        body.add_geom(
            name=f"{_NAME}{index}_shape",
            type=mujoco.mjtGeom.mjGEOM_CYLINDER if index % 2 else mujoco.mjtGeom.mjGEOM_BOX,
            size=[0.016, 0.012 if index % 2 == 0 else _HALF_HEIGHT, _HALF_HEIGHT],
            rgba=_COLORS[index % len(_COLORS)],
            contype=0,
            conaffinity=0,
        )


class Clutter:
    """Changes the light and where things lie, each time that the target is placed."""

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        config: SimulationConfig,
        generator: np.random.Generator,
    ) -> None:
        """Take hold of a scene that :func:`add_clutter` has prepared."""
        self._model, self._data, self._generator = model, data, generator
        self._change = config.light_change
        self._low = np.array((config.target_x[0], config.target_y[0]))
        self._high = np.array((config.target_x[1], config.target_y[1]))
        self._lamp = np.array(model.light_diffuse)
        self._mocap = [
            int(model.body_mocapid[model.body(f"{_NAME}{index}").id])
            for index in range(config.distractors)
        ]

    def shuffle(self, *work: FloatArray) -> None:
        """Change everything, around places of work [m] (3,)."""
        generator, change = self._generator, self._change
        if change > 0.0:
            self._model.light_diffuse[:] = self._lamp * generator.uniform(
                1.0 - change, 1.0 + change
            )
        for mocap in self._mocap:
            for _ in range(_ATTEMPTS):
                place = generator.uniform(self._low, self._high)
                if all(np.linalg.norm(place - middle[:2]) > _APART for middle in work):
                    break
            else:
                continue
            turn = generator.uniform(0.0, np.pi)
            self._data.mocap_pos[mocap] = (*place, _HALF_HEIGHT)
            self._data.mocap_quat[mocap] = (np.cos(turn / 2), 0.0, 0.0, np.sin(turn / 2))
