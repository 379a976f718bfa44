"""A bit and a plug: it clips in near the axis, pushes the plug home, and leaves it there."""

from __future__ import annotations

import numpy as np
import pytest
from arm_bench import ArmBench

from kv_action_router.errors import SimulationError
from kv_action_router.simulation.config import screw_cell, station_cell
from kv_action_router.simulation.connector import Connector
from kv_action_router.simulation.plant import CONNECTOR, Plant

PLACE = np.array([0.45, 0.10])


class Bench(ArmBench):
    """The arm over a plug, on springs."""

    @property
    def connector(self) -> Connector:
        assert self.plant.connector is not None
        return self.plant.connector

    def stand(self, away: float, **changes: object) -> None:
        """Put a fresh plug there, and the bit on its face, that far from its axis [m]."""
        self.plant.place_connector(*PLACE)
        self.connector.renew(self.connector.place, **changes)
        self.stand_at(np.array([PLACE[0] + away, PLACE[1], self.connector.face]))
        self.press(0.0)

    def push_home(self) -> None:
        self.ramp(7.0, 0.2)
        self.run(0.2)
        self.ramp(27.0, 0.8)
        self.run(0.2)


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(station_cell(distractors=0))


@pytest.mark.parametrize(("away", "held"), [(2.0e-4, True), (2.5e-3, False)])
def test_the_mouth_takes_a_bit_that_is_near_and_pressed(
    bench: Bench, away: float, held: bool
) -> None:
    bench.stand(away, catches=True)
    bench.ramp(7.0, 0.2)
    bench.run(0.2)
    assert bench.connector.clipped == held
    assert bench.connector.socket.depth < 1.0e-4  # the nose bears that


def test_a_plug_that_is_hardly_pressed_stays_out(bench: Bench) -> None:
    bench.stand(0.0, catches=True)
    bench.press(1.0)
    bench.run(0.2)
    assert not bench.connector.clipped
    assert bench.connector.socket.depth == 0.0


def test_a_plug_is_pushed_home_bears_a_tug_and_is_left_there(bench: Bench) -> None:
    bench.stand(0.0, catches=True)
    bench.push_home()
    connector = bench.connector
    assert connector.socket.latched
    bench.ramp(-9.0, 0.5)
    bench.run(0.2)
    # The sensor in the wrist feels the clip's pull beside the tool's own weight.
    held = float(bench.plant.data.sensor("force").data[2])
    assert connector.clipped
    assert connector.socket.latched
    bench.ramp(-30.0, 0.5)
    bench.run(0.2)
    assert not connector.clipped
    assert connector.let_go
    assert connector.socket.depth == pytest.approx(connector.socket.config.travel, abs=2e-4)
    free = float(bench.plant.data.sensor("force").data[2])
    assert abs(held - free) > 4.0
    connector.let_go = False


def test_a_worn_latch_snaps_and_lets_go(bench: Bench) -> None:
    bench.stand(0.0, catches=False)
    bench.push_home()
    socket = bench.connector.socket
    assert not socket.latched
    assert socket.depth > socket.config.crest
    bench.ramp(-9.0, 0.5)
    bench.run(0.3)
    assert socket.depth < socket.config.travel - 5.0e-4


def test_a_station_knows_its_works_by_name() -> None:
    bench = Bench(station_cell(distractors=0))
    bench.plant.place_connector(0.40, 0.1)
    bench.plant.place_target(0.50, -0.1)
    np.testing.assert_allclose(bench.plant.place_of(CONNECTOR), [0.40, 0.1, 0.01])
    np.testing.assert_allclose(bench.plant.place_of(""), [0.50, -0.1, 0.01])
    plant = Plant(screw_cell(), bench.robot.home, bench.robot.velocity_limit)
    assert plant.connector is None
    with pytest.raises(SimulationError, match="no connector"):
        plant.place_connector(0.4, 0.1)
