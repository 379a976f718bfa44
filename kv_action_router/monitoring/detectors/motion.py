"""What several detectors read of one feedback, taken out of its arrays once."""

from __future__ import annotations

from dataclasses import dataclass

from kv_action_router.contracts import ExecutionFeedback, InjectorState

_CONTROLLED = (InjectorState.HOLD, InjectorState.FOLLOW, InjectorState.RAMP)


@dataclass(slots=True)
class Motion:
    """Wanted and measured motion as plain numbers: of a few joints they are faster than arrays.

    Attributes:
        joints: names (n).
        controlled: the injector leads the joints, and there is a set-point for each of them.
        position, velocity: measured [rad], [rad/s] (n,).
        setpoint_position, setpoint_velocity: wanted [rad], [rad/s] (n,).
        phase: share of the stage's motion that is done; NaN = none.
    """

    joints: tuple[str, ...]
    controlled: bool
    position: list[float]
    velocity: list[float]
    setpoint_position: list[float]
    setpoint_velocity: list[float]
    phase: float

    @classmethod
    def of(cls, feedback: ExecutionFeedback) -> Motion:
        """Read a feedback."""
        position = feedback.position.tolist()
        wanted = feedback.setpoint_position.tolist()
        return cls(
            feedback.joints,
            feedback.state in _CONTROLLED and len(wanted) == len(position),
            position,
            feedback.velocity.tolist(),
            wanted,
            feedback.setpoint_velocity.tolist(),
            feedback.phase,
        )
