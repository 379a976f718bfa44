"""Grip: the force of a gripper, from the current of its drive."""

from __future__ import annotations

from kv_action_router.contracts import DriveSample
from kv_action_router.monitoring.signals import SignalTable


class GripDetector:
    """Writes ``grip_force`` [N]: current of the gripper's drive times its force constant.

    Without a gripper there is no such signal, and no condition on it ever holds.
    """

    def __init__(self, drive: str = "", force_constant: float = 0.0) -> None:
        """Watch a drive.

        Args:
            drive: name of the gripper's drive; empty = there is no gripper.
            force_constant: of the gripper [N/A].
        """
        self._drive = drive
        self._force_constant = force_constant

    def reset(self) -> None:
        """Nothing is kept."""

    def measure(self, table: SignalTable, now_ns: int) -> None:
        """Nothing here changes with time alone."""

    def on_drives(self, sample: DriveSample, table: SignalTable) -> None:
        """Take the feedback of the drives; without a current nothing is measured."""
        if not self._drive or self._drive not in sample.names:
            return
        index = sample.names.index(self._drive)
        current = float(sample.current[index]) if index < len(sample.current) else float("nan")
        table.put("grip_force", abs(current) * self._force_constant, sample.receipt_ns)
