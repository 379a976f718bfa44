"""Whether a motion keeps clear of obstacles, table and the arm itself."""

from __future__ import annotations

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import CollisionError
from kv_action_router.robots.model import RobotModel
from kv_action_router.robots.swept import SweptCollision, Touch
from kv_action_router.synthesis.config import SynthesisConfig
from kv_action_router.synthesis.source import PlanRequest
from kv_action_router.synthesis.spline import Motion


class Clearance:
    """Tests planned and corrected motions alike. Not thread safe.

    Raises:
        ConfigError: a contact link is none of the robot's.
    """

    def __init__(self, model: RobotModel, config: SynthesisConfig) -> None:
        collision = model.collision_model(config.table_plane)
        config.check_links(collision.links)
        self._swept = SweptCollision(collision)
        self._config = config

    def first_touch(self, motion: Motion, request: PlanRequest, begin: float = 0.0) -> Touch | None:
        """Return where a motion would touch something its stage doesn't allow, or None.

        Args:
            motion: to test.
            request: that it answers.
            begin: time [s] of the motion from which on it is tested; the touch counts from there.
        """
        contact = self._config.contact(request.stage.allowed_contact, request.seen_target)
        return self._swept.first_touch(
            lambda times: motion.derivative(times + begin, 0),
            motion.duration - begin,
            request.obstacles,
            self._config.collision_padding,
            contact,
        )

    def check(self, motion: Motion, request: PlanRequest, begin: float = 0.0) -> None:
        """Refuse a motion that would touch something its stage doesn't allow.

        Raises:
            CollisionError: naming the pair and when it would touch.
        """
        touch = self.first_touch(motion, request, begin)
        if touch is not None:
            raise CollisionError(f"motion would touch: {touch}")

    def touch_at(self, q: FloatArray, request: PlanRequest) -> str | None:
        """Return the pair that would touch where the arm stands at ``q`` [rad] (n,), or None."""
        contact = self._config.contact(request.stage.allowed_contact, request.seen_target)
        return self._swept.touch_at(q, request.obstacles, self._config.collision_padding, contact)
