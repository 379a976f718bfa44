"""The robot's own sensors for the body slice: newest values, masked when old or invalid."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kv_action_router.contracts import DriveSample, FloatArray, ImuSample
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.odometry import (
    OdometryEvent,
    OdometrySample,
    OdometryWindow,
)
from kv_action_router.encoding.slip import SlipDetector


class BodyInputs:
    """Newest IMU, odometry and drive feedback.

    Invariant: what is handed out is younger than the input timeout, or None.
    """

    def __init__(self, config: EncoderConfig, joints: Sequence[str]) -> None:
        self._timeout = config.input_timeout
        self._index = {name: index for index, name in enumerate(joints)}
        self._window = OdometryWindow(config.odometry_window, config.odometry_jump)
        self._slip = SlipDetector(config)
        self._imu: ImuSample | None = None
        self._odometry: OdometrySample | None = None
        self._duty_sum = [0.0] * len(joints)
        self._duty_count = [0] * len(joints)
        self._duty = [math.nan] * len(joints)
        self._duty_is_new = False  # feedback has come since the mean was last taken
        self._duty_receipt_ns = 0

    def on_imu(self, sample: ImuSample) -> None:
        """Take in an IMU sample; with fresh odometry it also judges slip."""
        self._imu = sample
        wheels = self._odometry
        if wheels is not None and self._fresh(wheels.receipt_ns, sample.receipt_ns):
            self._slip.update(sample, wheels.speed, wheels.yaw_rate)

    def on_odometry(self, sample: OdometrySample) -> OdometryEvent:
        """Take in an odometry sample; return what became of it."""
        event = self._window.update(sample)
        if event in (OdometryEvent.TAKEN, OdometryEvent.JUMP):
            self._odometry = sample
        return event

    def on_drives(self, sample: DriveSample) -> None:
        """Take in drive feedback: duty is averaged until the next key."""
        if len(sample.duty) != len(sample.names):
            return
        for name, duty in zip(sample.names, sample.duty.tolist(), strict=True):
            index = self._index.get(name)
            if index is not None and math.isfinite(duty):
                self._duty_sum[index] += duty
                self._duty_count[index] += 1
                self._duty_is_new = True
        self._duty_receipt_ns = sample.receipt_ns

    def imu(self, now_ns: int) -> ImuSample | None:
        """Return the newest IMU sample."""
        sample = self._imu
        return sample if sample is not None and self._fresh(sample.receipt_ns, now_ns) else None

    def duty(self, now_ns: int) -> Sequence[float] | None:
        """Return the mean duty (n,) since the last call with new feedback; NaN = not measured."""
        if not self._fresh(self._duty_receipt_ns, now_ns):
            return None
        if self._duty_is_new:
            self._duty = [
                total / count if count else before
                for total, count, before in zip(
                    self._duty_sum, self._duty_count, self._duty, strict=True
                )
            ]
            self._duty_sum = [0.0] * len(self._duty)
            self._duty_count = [0] * len(self._duty)
            self._duty_is_new = False
        return self._duty

    def displacement(self, now_ns: int) -> FloatArray | None:
        """Return x, y [m] and yaw [rad] (3,) of the base over the last second."""
        return self._window.displacement(now_ns, self._timeout)

    @property
    def odometry_confidence(self) -> float:
        """Confidence in the odometry, 0 to 1; 1 while nothing speaks against it."""
        return self._slip.confidence

    @property
    def jump_length(self) -> float:
        """Length of the last odometry jump [m]."""
        return self._window.jump_length

    def _fresh(self, receipt_ns: int, now_ns: int) -> bool:
        return receipt_ns > 0 and now_ns - receipt_ns <= self._timeout * 1e9
