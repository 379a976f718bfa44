"""Slip: whether the wheels say what the IMU feels.

Accelerations of IMU and wheels, the first without gravity, go through the same low pass; where the
larger exceeds the smaller by the ratio, or their signs differ, the wheels slip (or the base
slides). Below a dead band there is no evidence either way. Turning in place shows in no
acceleration: there the gyro is held against the wheels' yaw rate in the same manner. The
confidence in the odometry falls fast and returns slowly.
"""

from __future__ import annotations

import math

import numpy as np

from kv_action_router.contracts import FloatArray, ImuSample
from kv_action_router.encoding.camera import rotation_from_quaternion
from kv_action_router.encoding.config import SlipConfig

GRAVITY = 9.81  # [m/s^2]
_GAP_NS = 500_000_000  # samples farther apart start the filters anew


class SlipDetector:
    """Confidence in wheel odometry.

    Invariant: ``confidence`` is in [0, 1]; a sample that is not finite changes nothing.
    """

    def __init__(self, config: SlipConfig) -> None:
        self._config = config
        self.confidence = 1.0
        self.slipping = False
        self._last_ns = 0
        self._speed = 0.0
        self._wheel_acceleration = 0.0
        self._imu_acceleration = 0.0
        self._up: FloatArray | None = None  # [m/s^2] specific force at rest, in the IMU's frame

    def update(self, imu: ImuSample, speed: float, yaw_rate: float) -> float:
        """Take in one instant and return the confidence.

        Args:
            imu: newest sample; x forward, z up.
            speed: of the base as the wheels say [m/s].
            yaw_rate: of the base as the wheels say [rad/s].
        """
        elapsed_ns = imu.receipt_ns - self._last_ns
        if elapsed_ns <= 0 or not math.isfinite(speed):
            return self.confidence
        force = imu.linear_acceleration
        felt = bool(np.isfinite(force).all())
        fresh = self._last_ns == 0 or elapsed_ns > _GAP_NS
        self._last_ns = imu.receipt_ns
        if fresh:
            self._restart(imu, speed, felt)
            return self.confidence
        dt = elapsed_ns * 1e-9
        slips = self._turns_otherwise(imu, yaw_rate)
        gain = 1.0 - math.exp(-dt / self._config.slip_filter)
        self._wheel_acceleration += gain * ((speed - self._speed) / dt - self._wheel_acceleration)
        self._speed = speed
        if felt:
            forward = self._without_gravity(imu, dt)
            self._imu_acceleration += gain * (forward - self._imu_acceleration)
            slips = slips or _disagree(
                self._imu_acceleration,
                self._wheel_acceleration,
                self._config.slip_acceleration_dead_band,
                self._config.slip_ratio,
            )
        self.slipping = slips
        constant = self._config.slip_attack if slips else self._config.slip_release
        goal = 0.0 if slips else 1.0
        self.confidence += (goal - self.confidence) * (1.0 - math.exp(-dt / constant))
        return self.confidence

    def _restart(self, imu: ImuSample, speed: float, felt: bool) -> None:
        self._speed = speed
        self._wheel_acceleration = self._imu_acceleration = 0.0
        self._up = np.array(imu.linear_acceleration, dtype=float) if felt else None

    def _without_gravity(self, imu: ImuSample, dt: float) -> float:
        """Return the forward acceleration [m/s^2] of the base."""
        force = imu.linear_acceleration
        orientation = imu.orientation
        if np.isfinite(orientation).all() and float(orientation @ orientation) > 0.25:
            up = GRAVITY * rotation_from_quaternion(orientation)[2]
            self._up = up
            return float(force[0] - up[0])
        # Without an orientation: the direction turns with the gyro and drifts to the mean force.
        if self._up is None:
            self._up = np.array(force, dtype=float)
        rate = imu.angular_velocity
        if np.isfinite(rate).all():
            self._up = self._up - np.cross(rate, self._up) * dt
        share = 1.0 - math.exp(-dt / self._config.gravity_filter)
        up = self._up + share * (np.asarray(force, dtype=float) - self._up)
        self._up = up * (GRAVITY / max(float(np.linalg.norm(up)), 1e-6))
        return float(force[0] - self._up[0])

    def _turns_otherwise(self, imu: ImuSample, yaw_rate: float) -> bool:
        gyro = float(imu.angular_velocity[2])
        if not (math.isfinite(gyro) and math.isfinite(yaw_rate)):
            return False
        dead_band = self._config.slip_yaw_dead_band
        return abs(gyro - yaw_rate) > dead_band and _disagree(
            gyro, yaw_rate, dead_band, self._config.slip_ratio
        )


def _disagree(first: float, second: float, dead_band: float, ratio: float) -> bool:
    """Return whether max(r, 1/r) exceeds the ratio, or the signs differ, outside the dead band."""
    small, large = sorted((abs(first), abs(second)))
    if large <= dead_band:
        return False
    if first * second < 0.0 and small > dead_band:
        return True
    return large / max(small, dead_band) > ratio
