"""When a robot came to rest for good, from its measured speeds."""

from __future__ import annotations


class SpeedLog:
    """Speeds over time.

    Invariant: instants never fall. One thread adds, any thread may ask.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[int, float]] = []

    def add(self, instant_ns: int, speed: float) -> None:
        """Note a speed [rad/s] at an instant of CLOCK_MONOTONIC [ns].

        Raises:
            ValueError: the instant lies before the newest one.
        """
        if self._entries and instant_ns < self._entries[-1][0]:
            raise ValueError(f"instants must not fall, got {instant_ns}")
        self._entries.append((instant_ns, speed))

    @property
    def newest(self) -> tuple[int, float] | None:
        """Instant [ns] and speed [rad/s] of the newest sample; None without one."""
        return self._entries[-1] if self._entries else None

    def peak(self, since_ns: int) -> float:
        """Return the largest speed from an instant on [rad/s]; 0 without samples."""
        return max((speed for instant, speed in self._entries if instant >= since_ns), default=0.0)

    def rest_ns(self, since_ns: int, limit: float) -> int | None:
        """Return the first instant from which on every sample was at rest [ns].

        Args:
            since_ns: samples before it do not count [ns].
            limit: speed at rest, at most [rad/s].

        Returns:
            None when the newest sample moves, or there is none.
        """
        rest: int | None = None
        for instant, speed in reversed(self._entries):
            if instant < since_ns or not speed <= limit:
                break
            rest = instant
        return rest

    def rested_ns(self, since_ns: int, limit: float) -> int:
        """Return for how long every sample was at rest, up to the newest one [ns]."""
        rest = self.rest_ns(since_ns, limit)
        return 0 if rest is None else self._entries[-1][0] - rest
