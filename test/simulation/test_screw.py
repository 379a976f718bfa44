"""A bit and a screw: it engages near the axis, pressed and turned; torque passes through it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from arm_bench import ArmBench

from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig, screw_cell, station_cell
from kv_action_router.simulation.plant import Plant
from kv_action_router.simulation.screw import Hold, Screw

PLACE = np.array([0.45, 0.0])
CAPTURE = 4.0e-4  # [m]


class Bench(ArmBench):
    """The arm over a screw, on springs."""

    @property
    def screw(self) -> Screw:
        assert self.plant.screw is not None
        return self.plant.screw

    def stand(self, away: float) -> None:
        """Put a fresh screw there, and the bit on its head, that far from its axis [m]."""
        self.plant.place_target(*PLACE)
        self.stand_at(np.array([PLACE[0] + away, PLACE[1], self.screw.top]))
        self.screw.after_step()


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(screw_cell(distractors=0))


@pytest.mark.parametrize(("away", "held"), [(0.5 * CAPTURE, True), (3.0 * CAPTURE, False)])
def test_the_recess_takes_a_bit_that_is_near_and_pressed(
    bench: Bench, away: float, held: bool
) -> None:
    bench.stand(away)
    bench.press(9.0)
    bench.run(0.2)
    assert (bench.screw.hold is not Hold.FREE) == held


def test_a_bit_that_is_hardly_pressed_stays_out(bench: Bench) -> None:
    bench.stand(0.0)
    bench.press(1.0)
    bench.run(0.2)
    assert bench.screw.hold is Hold.FREE
    assert bench.screw.thread.angle == 0.0


def test_a_screw_is_driven_to_the_torque_of_the_spindle_and_let_go_of(bench: Bench) -> None:
    thread = bench.screw.thread
    thread.config = dataclasses.replace(thread.config, travel=2.0e-4)
    bench.stand(0.0)
    bench.press(9.0)
    bench.run(0.2)
    bench.speed = 4.0
    bench.run(0.4)
    screw = bench.screw
    assert screw.hold is Hold.ENGAGED
    depth = screw.top - bench.plant.tip[2]
    assert depth > screw.config.mouth_depth + 4e-4
    bench.limit = 1.0
    bench.angle = float(bench.plant.position[6])
    bench.press(9.0)
    bench.run(1.6)
    assert screw.peak_torque == pytest.approx(1.0, abs=0.05)
    assert screw.thread.advance == pytest.approx(screw.thread.config.travel, abs=1e-4)
    # What the screw takes turns the tool about its axis, and the sensor in the wrist feels it.
    felt = bench.plant.data.sensor("torque").data
    assert np.linalg.norm(felt) == pytest.approx(1.0, abs=0.25)
    bench.limit, bench.speed = 0.1, 0.0
    bench.angle = float(bench.plant.position[6])
    bench.press(-60.0)
    bench.run(0.4)
    assert screw.hold is Hold.FREE
    assert screw.let_go


def test_the_touch_cell_has_no_screw_and_no_spindle() -> None:
    robot = RobotModel.load("ur5e")
    plant = Plant(SimulationConfig(), robot.home, robot.velocity_limit)
    assert plant.screw is None
    assert plant.model.nv == 6
    assert not plant.data.xfrc_applied.any()


@pytest.mark.parametrize(("file", "cell"), [("screw", screw_cell), ("station", station_cell)])
def test_the_cells_file_says_the_same_as_the_code(
    file: str, cell: Callable[[], SimulationConfig]
) -> None:
    text = Path(__file__).parents[2].joinpath("config", f"{file}_cell.yaml").read_text("utf-8")
    content = yaml.safe_load(text)
    told = content["/**"]["ros__parameters"]
    default = dataclasses.asdict(SimulationConfig())
    wanted = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in dataclasses.asdict(cell()).items()
        if value != default[name]
    }
    assert told == wanted
