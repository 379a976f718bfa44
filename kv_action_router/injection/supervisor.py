"""What must be alive for the arm to move: joint states, IMU, the other nodes, the loop itself."""

from __future__ import annotations

from kv_action_router.injection.config import InjectionConfig
from kv_action_router.injection.watchdogs import Watchdog, first_lost

_WELL = ("", "")


class Supervisor:
    """Judges once a tick.

    Invariant: from :meth:`start` on every required source is watched, also one that was never heard
    of.
    """

    JOINTS = "joint_states"
    IMU = "imu"
    LOOP = "control_loop"

    def __init__(self, config: InjectionConfig) -> None:
        grace = round(config.grace * 1e9)
        self._overrun_ns = round(config.overrun_limit * 1e9)
        self._imu_required = config.imu_required
        self.joints = Watchdog(self.JOINTS, round(config.joint_state_timeout * 1e9), grace)
        self._imu = Watchdog(self.IMU, round(config.imu_timeout * 1e9), grace)
        timeout = round(config.heartbeat_timeout * 1e9)
        self._nodes = {
            name: Watchdog(name, timeout, grace) for name in config.watched_nodes if name
        }
        self._watched: list[Watchdog] = []
        self._quiet_until_ns = 0  # nothing can be lost before

    def start(self, now_ns: int) -> None:
        """Begin to watch."""
        for watchdog in (self.joints, self._imu, *self._nodes.values()):
            watchdog.start(now_ns)
        self._watched = [self.joints, *self._nodes.values()]
        if self._imu_required:
            self._watched.append(self._imu)
        self._quiet_until_ns = 0

    def joints_seen(self, receipt_ns: int) -> None:
        """Note a joint state; the receipt is that of the joint heard of longest ago [ns]."""
        if self.joints.seen(receipt_ns):
            self._quiet_until_ns = 0

    def imu_seen(self, receipt_ns: int) -> None:
        """Note an IMU sample; from then on the IMU is watched."""
        if self._imu.seen(receipt_ns):
            self._quiet_until_ns = 0
        if self._imu.last_ns and self._imu not in self._watched:
            self._watched.append(self._imu)
            self._quiet_until_ns = 0

    def heartbeat(self, node: str, receipt_ns: int, *, starting: bool = False) -> None:
        """Note a sign of life; ``starting`` = the node says that it is not active yet."""
        watchdog = self._nodes.get(node)
        if watchdog is not None and watchdog.seen(receipt_ns, starting=starting):
            self._quiet_until_ns = 0

    def joints_lost(self, now_ns: int) -> bool:
        """Return whether there are no joint states."""
        return now_ns > self._quiet_until_ns and self.joints.lost(now_ns)

    def judge(
        self, now_ns: int, late_ns: int, hazard: str = "", hazard_reason: str = ""
    ) -> tuple[str, str]:
        """Return what is at fault and why, for people; two empty strings when all is well.

        Args:
            now_ns: CLOCK_MONOTONIC of the tick [ns].
            late_ns: since the last tick [ns].
            hazard: joint whose drive asks for the fail-safe; empty = none.
            hazard_reason: why, for people.
        """
        if now_ns > self._quiet_until_ns:
            lost = first_lost(self._watched, now_ns)
            if lost is not None:
                return lost.name, lost.describe(now_ns)
            self._quiet_until_ns = min(watchdog.expires_ns() for watchdog in self._watched)
        if late_ns > self._overrun_ns:
            return self.LOOP, f"control loop was away for {late_ns * 1e-6:.0f} ms"
        if hazard:
            return hazard, hazard_reason
        return _WELL
