"""The arm on springs over its work, without any stage: for what only the plant decides."""

from __future__ import annotations

import mujoco
import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.robots.model import RobotModel
from kv_action_router.simulation.config import SimulationConfig
from kv_action_router.simulation.drives import Interface
from kv_action_router.simulation.plant import Plant

# springs of the arm and its spindle, as the injector's are when it presses
STIFFNESS = np.array([600.0, 1000.0, 400.0, 110.0, 110.0, 70.0, 0.8])
DAMPING = np.array([45.0, 70.0, 28.0, 5.0, 5.0, 3.5, 0.02])
STEP = 0.002  # [s]


class ArmBench:
    """Arm and plant; set-points are held, the spindle's goes on at its speed."""

    def __init__(self, config: SimulationConfig) -> None:
        self.robot = RobotModel.load("ur5e_spindle")
        self.plant = Plant(config, self.robot.home, self.robot.velocity_limit)
        self.now_ns = 0
        self.limit = 0.1  # [N m] of the spindle
        self.angle = 0.0  # [rad] of the spindle's set-point
        self.speed = 0.0  # [rad/s]
        self.setpoint = np.array(self.robot.home)

    def stand_at(self, tip: FloatArray) -> None:
        """Put the tip there [m] (3,), at rest."""
        plant = self.plant
        plant.position[:] = self.robot.solve_ik(tip, None, self.robot.home)
        plant.velocity[:] = 0.0
        mujoco.mj_forward(plant.model, plant.data)
        plant.bit.after_step()
        self.angle, self.speed = 0.0, 0.0

    def press(self, force: float) -> None:
        """Let the springs press with a force [N]; negative pulls."""
        self.setpoint = self.pressed(force)

    def pressed(self, force: float) -> FloatArray:
        """Return the set-point (n,) that presses with a force [N] from here."""
        measured = np.array(self.plant.position)
        down = np.array([0.0, 0.0, -force])
        moved: FloatArray = measured + self.robot.jacobian(measured)[:3].T @ down / STIFFNESS
        return moved

    def ramp(self, force: float, seconds: float) -> None:
        """Build up another force [N] from here, evenly."""
        first, last = self.setpoint, self.pressed(force)
        steps = round(seconds / STEP)
        for step in range(1, steps + 1):
            self.setpoint = first + step / steps * (last - first)
            self.run(STEP)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        plant = self.plant
        for _ in range(round(seconds / STEP)):
            self.now_ns += round(STEP * 1e9)
            self.angle += self.speed * STEP
            self.setpoint[6] = self.angle
            wanted = np.zeros(7)
            wanted[6] = self.speed
            torque: FloatArray = self.robot.gravity_torque(plant.position) + (
                STIFFNESS * (self.setpoint - plant.position) + DAMPING * (wanted - plant.velocity)
            )
            torque[6] = np.clip(torque[6], -self.limit, self.limit)
            plant.drives.command(Interface.EFFORT, torque, (), self.now_ns)
            plant.step(self.now_ns)
