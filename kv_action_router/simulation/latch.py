"""A plug in its socket: what it takes to push it in, the latch that snaps, and what holds it.

A quasi-static model: the plug moves as long as it is pushed with more than the socket's resistance
at its depth, the faster the more (an overdamped slide, without a mass). What resists is friction,
and a nose that the plug must ride up until the latch snaps behind it; then nothing but friction
until the end stop, which gives way like a seal. Pulled, a latched plug is held, one that has not
latched by friction alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kv_action_router.configuration import Configuration, parameter
from kv_action_router.errors import ConfigError


@dataclass(frozen=True)
class SocketConfig(Configuration):
    """A socket and its plug; the defaults are of a small latched connector of some ten contacts.

    The plug stands in its pre-lock position: at depth 0 it leans against the nose, and further out
    it does not come.
    """

    travel: float = parameter(
        4.0e-3, "depth of the end stop", unit="m", minimum=1.0e-4, maximum=0.05
    )
    crest: float = parameter(
        2.5e-3, "depth at which the latch snaps", unit="m", minimum=0.0, maximum=0.05
    )
    friction: float = parameter(
        1.5, "force that slides the plug, either way", unit="N", minimum=0.0, maximum=100.0
    )
    entry_force: float = parameter(
        8.0, "force at which it leaves its pre-lock position", unit="N", minimum=0.0, maximum=500.0
    )
    latch_force: float = parameter(
        10.0, "force just before the latch snaps", unit="N", minimum=0.0, maximum=500.0
    )
    retention: float = parameter(
        60.0, "force that tears a latched plug out", unit="N", minimum=0.0, maximum=1000.0
    )
    stop_stiffness: float = parameter(
        2.0e4, "of the end stop", unit="N/m", minimum=1.0e3, maximum=1.0e7
    )
    damping: float = parameter(
        150.0, "force over speed of the plug", unit="N s/m", minimum=1.0, maximum=1.0e5
    )
    catches: bool = parameter(True, "the latch holds; false = it is worn: it snaps and lets go")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.crest > self.travel:
            raise ConfigError("crest", f"at most travel {self.travel} m", self.crest)
        if not self.friction <= self.entry_force <= self.latch_force:
            raise ConfigError(
                "entry_force",
                f"from friction {self.friction} N to latch_force {self.latch_force} N",
                self.entry_force,
            )


class Socket:
    """One socket with its plug.

    Invariant: ``depth`` is never below 0, the pre-lock position; the plug moves in only when it is
    pushed with more than ``resistance``, and out only when it is pulled with more than ``holding``;
    a worn latch never holds.

    Attributes:
        config: of both.
        depth: of the plug, from its pre-lock position [m].
        latched: the latch holds it.
        peak_force: largest force that it was pushed with [N].
    """

    def __init__(self, config: SocketConfig) -> None:
        self.config = config
        self.depth = 0.0
        self.latched = False
        self.peak_force = 0.0

    @property
    def stop_force(self) -> float:
        """Force of the end stop, outward [N]."""
        return self.config.stop_stiffness * max(0.0, self.depth - self.config.travel)

    @property
    def resistance(self) -> float:
        """Force that must be exceeded to push the plug further in [N]."""
        config = self.config
        if self.depth >= config.crest:
            return config.friction + self.stop_force
        share = self.depth / config.crest
        return config.entry_force + share * (config.latch_force - config.entry_force)

    @property
    def holding(self) -> float:
        """Force that must be exceeded to pull the plug out [N]; negative = the stop pushes it."""
        config = self.config
        if self.latched and self.depth <= config.travel:
            return config.retention
        return config.friction - self.stop_force

    def act(self, force: float, duration: float) -> None:
        """Let a force act on the plug along the socket; one that is not finite changes nothing.

        Args:
            force: positive pushes it in [N].
            duration: [s].
        """
        if not math.isfinite(force):
            return
        config = self.config
        self.peak_force = max(self.peak_force, force)
        way = duration / config.damping
        if force > self.resistance:
            self.depth += (force - self.resistance) * way
            if self.depth >= config.crest:
                self.latched = config.catches
        elif -force > self.holding:
            on_stop = self.depth > config.travel
            depth = self.depth + (force + self.holding) * way
            self.depth = max(depth, config.travel if on_stop else 0.0)
            self.latched = self.latched and on_stop  # else it is torn out
