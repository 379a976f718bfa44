"""Where the joints are between two joint states: as far from their set-point as they were."""

from __future__ import annotations

from kv_action_router.injection.effort_law import State
from kv_action_router.injection.measurement import JointTracker
from kv_action_router.injection.set_point import SetPoint


class ExpectedJoints:
    """Stands in for a joint state that has not come.

    A set-point that goes on while the joints seem to stand would pull harder with every tick: in
    the 20 ms until joint states count as lost, a wrist would double its speed.

    Invariant: :meth:`state` is the last joint state moved as the set-point was since.
    """

    def __init__(self, joints: JointTracker, set_point: SetPoint) -> None:
        n = len(joints.names)
        self._joints = joints
        self._set_point = set_point
        self._position_error = [0.0] * n  # [rad] of the set-point, at the last joint state
        self._velocity_error = [0.0] * n  # [rad/s]
        self._known = False
        self._state = State([0.0] * n, [0.0] * n, [0.0] * n)

    def note(self, *, seen: bool) -> None:
        """Note whether a joint state has come; called before the set-point moves on."""
        if seen or self._known:
            self._known = not seen
            return
        self._known = True
        point, joints = self._set_point, self._joints
        self._position_error = [p - q for p, q in zip(point.position, joints.position, strict=True)]
        self._velocity_error = [v - w for v, w in zip(point.velocity, joints.velocity, strict=True)]

    def state(self) -> State:
        """Return where the joints are by now; the same object every time."""
        state, point = self._state, self._set_point
        state.position = [p - e for p, e in zip(point.position, self._position_error, strict=True)]
        state.velocity = [v - e for v, e in zip(point.velocity, self._velocity_error, strict=True)]
        return state
