"""How good a perception is, on frames that no training has seen: errors, refusals, likeness."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kv_action_router.contracts import SLICE_WEIGHTS, Float32Array, FloatArray, TargetEstimate
from kv_action_router.encoding import target_slice
from kv_action_router.encoding.backend import Perceiver, PerceptionBackend
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.face_axis import axis
from kv_action_router.learning.cells import Cell
from kv_action_router.learning.frames import Frame, FrameMaker, Scene
from kv_action_router.reporting.statistics import quantiles

SEED = 90_001  # of the held-out frames; training's seeds are small
SHOWN, HIDDEN = 0.22, 0.08  # share of the face above which it can be asked for, below which not
FAR_OFF = 0.010  # [m] an estimate farther from the target is a guess
DISTANCES = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)  # [m] of the table of likeness
LIKENESS_STEPS = len(DISTANCES)
_PAIRS = 10  # of frames a distance
_LOOKS = 4  # frames a scene
_SCENES = 24  # that are compared with each other
_ELLIPSOID = 7.815  # 95 % quantile of chi-squared with 3 degrees of freedom
_STATED = (0.22, 0.5, 0.9, 1.01)  # limits of the classes of visibility


@dataclass
class Tally:
    """What one perception said of all frames."""

    errors: list[float]
    leans: list[float]  # angles between the true and the told axis of the face
    turns: list[float]
    inside: list[bool]  # whether the target lay in the estimate's ellipsoid of 95 %
    times: list[float]
    asked: list[tuple[float, bool]]  # visible share of a shown target, and whether it was seen
    guesses: int  # estimates that are far off, or of a target that is not there
    nothing: int  # frames without a visible target
    false: int  # of these, with an estimate

    @classmethod
    def empty(cls) -> Tally:
        """Return one of no frames."""
        return cls([], [], [], [], [], [], 0, 0, 0)

    def take(self, frame: Frame, cell: Cell, found: TargetEstimate | None, seconds: float) -> None:
        """Take in one answer."""
        self.times.append(1e3 * seconds)
        if frame.visible < HIDDEN:
            self.nothing += 1
        elif frame.visible > SHOWN:
            self.asked.append((frame.visible, found is not None))
        if found is None:
            return
        off = found.pose.position - frame.position
        error = float(np.linalg.norm(off))
        if frame.visible < HIDDEN:
            # a target that is known from a sliver, or held by nothing but its edge, is no guess
            if not error < FAR_OFF:
                self.false += 1
                self.guesses += 1
            return
        if not error < FAR_OFF:
            self.guesses += 1
        self.errors.append(1e3 * error)
        square = float(off @ np.linalg.solve(found.covariance[:3, :3], off))
        self.inside.append(square < _ELLIPSOID)
        told = axis(found.pose.orientation)
        across = float(np.linalg.norm(np.cross(told, frame.axis)))
        self.leans.append(math.degrees(math.atan2(across, float(told @ frame.axis))))
        if cell.fold:
            turn = math.remainder(found.yaw - frame.yaw, 2.0 * math.pi / cell.fold)
            self.turns.append(math.degrees(abs(turn)))

    def figures(self) -> dict[str, Any]:
        """Return the figures as data."""
        seen = {}
        for low, high in itertools.pairwise(_STATED):
            chosen = [found for share, found in self.asked if low <= share < high]
            seen[f"{low:.2f}"] = float(np.mean(chosen)) if chosen else None
        return {
            "frames": len(self.times),
            "estimates": len(self.errors),
            "error_mm": quantiles(self.errors, p50=0.5, p95=0.95, p99=0.99, max=1.0),
            "axis_degrees": quantiles(self.leans, p50=0.5, p95=0.95, max=1.0),
            "heading_degrees": quantiles(self.turns, p50=0.5, p95=0.95, max=1.0),
            "seen_share_from_visible": seen,
            "guesses": self.guesses,
            "nothing_to_see": self.nothing,
            "false": self.false,
            "inside_95_percent": float(np.mean(self.inside)) if self.inside else None,
            "cpu_ms": quantiles(self.times, p50=0.5),
        }


def backend(kind: str, checkpoint: str, cell: Cell) -> Callable[[Scene], PerceptionBackend]:
    """Return what makes a perception for a scene's camera."""
    simulation = cell.simulation
    config = EncoderConfig(
        perception=kind,
        checkpoint=checkpoint,
        target_hue=cell.hue,
        target_radius=float(np.abs(cell.face).max()),
        target_height=simulation.target_height,
    )
    perceiver = Perceiver(config)
    return lambda scene: perceiver.of(scene.camera)


def compare(
    maker: FrameMaker,
    cell: Cell,
    makers: dict[str, Callable[[Scene], PerceptionBackend]],
    scenes: int,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Return the figures of each perception on random scenes, and on the simulation's own.

    All look at the same frames, one after another, so that their times can be compared: of the
    processor, not of the clock, since other processes take turns.
    """
    report: dict[str, Any] = {}
    for kind in ("random", "plain"):
        tallies = {name: Tally.empty() for name in makers}
        generator = np.random.default_rng(SEED)
        for number in range(scenes if kind == "random" else max(1, scenes // 4)):
            scene = maker.scene(generator) if kind == "random" else maker.plain_scene()
            looking = {name: make(scene) for name, make in makers.items()}
            for _ in range(_LOOKS):
                frame = (maker.frame if kind == "random" else maker.plain_frame)(scene, generator)
                for name, looker in looking.items():
                    begin = time.thread_time()
                    found = looker.find(frame.color, frame.depth)
                    tallies[name].take(frame, cell, found.target, time.thread_time() - begin)
            if kind == "random":
                progress(number)
        report[kind] = {name: tally.figures() for name, tally in tallies.items()}
    return report


def likeness(
    maker: FrameMaker,
    make: Callable[[Scene], PerceptionBackend],
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Any]:
    """Return how alike keys are whose targets lie apart, and scenes that are the same or not.

    ``progress`` is told of each of :data:`LIKENESS_STEPS`.
    """
    rows = []
    for distance in DISTANCES:
        generator = np.random.default_rng(SEED + 1)  # the same scenes for each
        targets, scenes = [], []
        for _ in range(_PAIRS):
            scene = maker.scene(generator)
            looker = make(scene)
            slices = [_seen(looker, frame) for frame in maker.pair(scene, distance, generator)]
            first, second = slices
            scenes.append(_cosine(first[1], second[1]))
            if first[0] is not None and second[0] is not None:
                targets.append(_cosine(_target(first[0]), _target(second[0])))
        target = float(np.mean(targets)) if targets else None
        whole = None
        if target is not None:
            whole = (
                SLICE_WEIGHTS["target"] * target
                + SLICE_WEIGHTS["scene"] * float(np.mean(scenes))
                + SLICE_WEIGHTS["body"]
            )
        rows.append(
            {
                "distance_mm": 1e3 * distance,
                "target": target,
                "scene": float(np.mean(scenes)),
                "key_with_equal_body": whole,
            }
        )
        progress(len(rows))
    return {"by_distance": rows, "scene": _scene_likeness(maker, make, generator)}


def _scene_likeness(
    maker: FrameMaker,
    make: Callable[[Scene], PerceptionBackend],
    generator: np.random.Generator,
) -> dict[str, Any]:
    described: list[list[Float32Array]] = []
    for _ in range(_SCENES):
        scene = maker.scene(generator)
        looker = make(scene)
        described.append([_seen(looker, maker.frame(scene, generator))[1] for _ in range(3)])
    same = [_cosine(a, b) for own in described for i, a in enumerate(own) for b in own[:i]]
    other = [_cosine(a[0], b[0]) for i, a in enumerate(described) for b in described[:i]]
    return {
        "same": quantiles(same, p05=0.05, p50=0.5),
        "other": quantiles(other, p50=0.5, p95=0.95),
    }


def _seen(looker: PerceptionBackend, frame: Frame) -> tuple[TargetEstimate | None, Float32Array]:
    found = looker.find(frame.color, frame.depth)
    return found.target, looker.scene(frame.color, frame.depth, None).copy()


def _target(estimate: TargetEstimate) -> Float32Array:
    return target_slice.encode(estimate.pose.position, estimate.yaw)


def _cosine(first: Sequence[float] | FloatArray | Float32Array, second: Any) -> float:
    a, b = np.asarray(first, float), np.asarray(second, float)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
