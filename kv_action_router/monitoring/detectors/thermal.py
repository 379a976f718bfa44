"""Thermal: temperature and load of each drive, sensor faults kept apart from heat."""

from __future__ import annotations

import math

from kv_action_router.contracts import DriveSample, FloatArray
from kv_action_router.monitoring.signals import SignalTable

PLAUSIBLE_MINIMUM = -40.0  # [degC] below and above, it is the sensor that has failed
PLAUSIBLE_MAXIMUM = 200.0  # [degC]


class ThermalDetector:
    """Writes ``drive_temperature`` [degC], ``drive_current`` [A] and ``drive_load`` of each drive.

    Of a drive that reports it also ``wheel_speed`` [rad/s].

    A value that is not finite, or a temperature that no drive can have, is not measured.
    """

    def reset(self) -> None:
        """Nothing is kept."""

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_drives(self, sample: DriveSample, table: SignalTable) -> None:
        """Take the feedback of the drives."""
        receipt_ns = sample.receipt_ns
        for index, drive in enumerate(sample.names):
            temperature = _at(sample.temperature, index)
            if PLAUSIBLE_MINIMUM <= temperature <= PLAUSIBLE_MAXIMUM:
                table.put("drive_temperature", temperature, receipt_ns, drive)
            else:
                table.forget("drive_temperature", drive)
            if len(sample.wheel_speed):
                table.put("wheel_speed", _at(sample.wheel_speed, index), receipt_ns, drive)
            current = abs(_at(sample.current, index))
            if not math.isfinite(current):
                table.forget("drive_current", drive)
                table.forget("drive_load", drive)
                continue
            table.put("drive_current", current, receipt_ns, drive)
            rated = _at(sample.rated_current, index)
            if rated > 0.0 and math.isfinite(rated):
                table.put("drive_load", current / rated, receipt_ns, drive)
            else:
                table.forget("drive_load", drive)


def _at(values: FloatArray, index: int) -> float:
    return float(values[index]) if index < len(values) else math.nan
