"""Parameters of the collision test, the same wherever a motion is tested."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from kv_action_router.configuration import Configuration, parameter
from kv_action_router.contracts import Pose
from kv_action_router.errors import ConfigError
from kv_action_router.robots.swept import NO_CONTACT, AllowedContact


@dataclass(frozen=True)
class CollisionConfig(Configuration):
    """How near a motion may come to what."""

    collision_padding: float = parameter(
        0.02,
        "distance that motions keep from obstacles and the robot itself",
        unit="m",
        minimum=0.0,
        maximum=0.5,
    )
    contact_links: tuple[str, ...] = parameter(
        ("spindle", "tool"), "links that may touch where a stage allows contact"
    )
    contact_reach: float = parameter(
        0.06,
        "obstacles nearer to the target than this may be touched where a stage allows contact",
        unit="m",
        minimum=0.0,
        maximum=1.0,
    )
    table_height: float = parameter(
        0.0,
        "top of the table that motions stay above; -1 = no table",
        unit="m",
        minimum=-1.0,
        maximum=5.0,
    )

    @property
    def table_plane(self) -> float | None:
        """Height of the table [m], or None."""
        return None if self.table_height <= -1.0 else self.table_height

    def check_links(self, links: Collection[str]) -> None:
        """Refuse contact links that a robot has not.

        Raises:
            ConfigError: naming them and the robot's.
        """
        unknown = [link for link in self.contact_links if link not in links]
        if unknown:
            known = ", ".join(dict.fromkeys(links))
            raise ConfigError("contact_links", f"links of the robot ({known})", unknown)

    def contact(self, allowed_contact: str, target: Pose | None) -> AllowedContact:
        """Return what may be touched in a stage.

        Args:
            allowed_contact: what the stage says; empty = nothing.
            target: where the target is seen; None = nowhere: then obstacles may be touched
                anywhere, by the contact links.
        """
        if not allowed_contact:
            return NO_CONTACT
        place = None if target is None else target.position
        return AllowedContact(tuple(self.contact_links), place, self.contact_reach)
