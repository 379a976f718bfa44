"""Sensors against statics."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.sensors import ImuSensor, JointSensors, WrenchSensor

SILENT = SimulationConfig(
    position_noise=0.0,
    velocity_noise=0.0,
    effort_noise=0.0,
    force_noise=0.0,
    torque_noise=0.0,
    acceleration_noise=0.0,
    gyro_noise=0.0,
)


def at_rest(stepped, q: np.ndarray) -> None:
    stepped.plant.position[:] = q
    stepped.plant.velocity[:] = 0.0
    stepped.run(0.2)


def rotation_of(plant, site: str) -> np.ndarray:
    return plant.data.site_xmat[plant.model.site(site).id].reshape(3, 3)


@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(-0.5, 0.5), min_size=6, max_size=6))
def test_wrench_is_free_of_the_tool_weight_in_any_pose(
    shared, robot: RobotModel, offset: list[float]
) -> None:
    plant = shared.plant
    at_rest(shared, robot.home + np.array(offset))
    sensor = WrenchSensor(plant.model, plant.data, SILENT, np.random.default_rng(0))
    sensor.read()
    assert np.abs(sensor.wrench[:3]).max() < 0.05
    assert np.abs(sensor.wrench[3:]).max() < 0.01


def test_wrench_is_what_the_surroundings_exert(shared, robot: RobotModel) -> None:
    plant = shared.plant
    at_rest(shared, robot.home)
    sensor = WrenchSensor(plant.model, plant.data, SILENT, np.random.default_rng(0))
    force = np.array([1.0, -2.0, 5.0])  # on the tool, base frame
    spindle = plant.model.body("spindle").id
    plant.data.xfrc_applied[spindle, :3] = force
    shared.run(0.2)
    sensor.read()
    rotation = rotation_of(plant, "wrench")
    np.testing.assert_allclose(rotation @ sensor.wrench[:3], force, atol=0.05)
    lever = plant.data.xipos[spindle] - plant.data.site_xpos[plant.model.site("wrench").id]
    np.testing.assert_allclose(rotation @ sensor.wrench[3:], np.cross(lever, force), atol=0.02)
    plant.data.xfrc_applied[spindle, :3] = 0.0


def test_imu_at_rest_measures_gravity(shared, robot: RobotModel) -> None:
    plant = shared.plant
    at_rest(shared, robot.home)
    sensor = ImuSensor(plant.model, plant.data, SILENT, np.random.default_rng(0))
    sensor.read()
    rotation = rotation_of(plant, "imu")
    np.testing.assert_allclose(rotation @ sensor.reading[7:], [0.0, 0.0, 9.81], atol=0.05)
    assert np.abs(sensor.reading[4:7]).max() < 1e-3
    x, y, z, w = sensor.reading[:4]
    turned = np.empty(9)
    mujoco.mju_quat2Mat(turned, np.array([w, x, y, z]))
    np.testing.assert_allclose(turned.reshape(3, 3), rotation, atol=1e-6)


def test_encoder_resolution() -> None:
    config = SimulationConfig(position_noise=0.0, position_resolution=0.01)
    sensor = JointSensors(config, 3, np.random.default_rng(0))
    sensor.read(np.array([0.123, -0.126, 0.004]), np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(sensor.position, [0.12, -0.13, 0.0])


def test_noise_has_the_deviation_of_the_parameter_and_no_bias() -> None:
    config = SimulationConfig(position_noise=1e-3, velocity_noise=0.02, effort_noise=0.5)
    sensor = JointSensors(config, 2, np.random.default_rng(0))
    readings = []
    for _ in range(3000):
        sensor.read(np.ones(2), np.zeros(2), np.zeros(2))
        readings.append((sensor.position[0] - 1.0, sensor.velocity[0], sensor.effort[0]))
    array = np.array(readings)
    np.testing.assert_allclose(array.std(axis=0), [1e-3, 0.02, 0.5], rtol=0.1)
    assert (np.abs(array.mean(axis=0)) < np.array([1e-4, 2e-3, 5e-2])).all()


def test_same_seed_same_noise() -> None:
    config = SimulationConfig()
    first, second = (JointSensors(config, 6, np.random.default_rng(3)) for _ in range(2))
    for sensor in (first, second):
        sensor.read(np.zeros(6), np.zeros(6), np.zeros(6))
    assert first.position.tolist() == second.position.tolist()
    assert first.position[0] != pytest.approx(0.0, abs=1e-12)
