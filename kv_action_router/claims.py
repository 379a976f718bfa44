"""Who else on the network claims this robot's identity."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

CONFIRM_NS = 500_000_000  # a message of a process that has just ended may still arrive
FORGET_NS = 10_000_000_000  # silent for so long, it is gone


def new_instance() -> str:
    """Return a name for one run of a process, which no other run has."""
    return secrets.token_hex(8)


@dataclass(slots=True)
class _Claim:
    name: str
    first_ns: int
    last_ns: int


class Claims:
    """Remembers who else says that it is this robot.

    Robots say so with an identity and an instance; the same identity from another instance is
    another robot, or this one's manager started twice.

    Invariant: a claimant counts from its second message, at least ``CONFIRM_NS`` after its first,
    until it has been silent for ``FORGET_NS``.
    """

    def __init__(self, robot_id: str, instance: str) -> None:
        self.robot_id = robot_id
        self.instance = instance
        self._claims: dict[str, _Claim] = {}

    def hear(self, robot_id: str, instance: str, name: str, now_ns: int) -> None:
        """Take what somebody says of itself.

        Args:
            robot_id: that it claims.
            instance: of its run.
            name: of its node, for people.
            now_ns: CLOCK_MONOTONIC [ns].
        """
        if robot_id != self.robot_id or instance == self.instance:
            return
        claim = self._claims.setdefault(instance, _Claim(name, now_ns, now_ns))
        claim.last_ns = now_ns

    def conflict(self, now_ns: int) -> str:
        """Return a clause that names the others; empty = nobody else is this robot."""
        for instance, claim in list(self._claims.items()):
            if now_ns - claim.last_ns > FORGET_NS:
                del self._claims[instance]
        names = sorted(
            claim.name
            for claim in self._claims.values()
            if claim.last_ns - claim.first_ns >= CONFIRM_NS
        )
        return f"robot_id {self.robot_id!r} is claimed by {', '.join(names)} too" if names else ""
