"""What a search teaches: the motion that leads to the target ends where the target was found.

Perception may be off by the same millimeter again and again (a camera that stands a little beside
where it is believed to be). A search that succeeds knows by how much. The cached motion before it
is revised by that: its end moves, the pose that it is stored for stays. So the next motion that is
made from it leads there at once, wherever the target is then. It moves by a share of what one
search has found: a single find is noisy, and a few of them agree.

Whether it was found, the stage after the search tells: only when that has reached its end as well,
something is learned.
"""

from __future__ import annotations

import math

import numpy as np

from kv_action_router.contracts import EntryUpdate, FloatArray, UpdateOperation
from kv_action_router.errors import SynthesisError
from kv_action_router.robots.model import RobotModel
from kv_action_router.synthesis.execution import Execution
from kv_action_router.synthesis.kinematics import shifted_end
from kv_action_router.synthesis.pressing import Pressing
from kv_action_router.synthesis.reanchor import joined
from kv_action_router.tasks.stages import PressGoal, SearchGoal, TargetGoal, TipGoal

LEAST = 1.0e-4  # [m] less than this is not worth a new version
FARTHEST = 0.01  # [m] more than this is no error of perception
SHARE = 0.8  # of what was found, that the motion's end moves by


class FoundPlaces:
    """Remembers the motion that led to the target, until a search says where it really was.

    Invariant: a motion is revised once at most, and only by a search that follows it at once and a
    stage that follows that at once.
    """

    def __init__(self, model: RobotModel) -> None:
        self._model = model
        self._pressing = Pressing(model)
        self._led: Execution | None = None
        # What led to the target before a search, and joint positions (n,) at the search's end.
        self._sought: tuple[Execution, FloatArray] | None = None

    @property
    def sent(self) -> FloatArray | None:
        """Where the motion before has sent the tip [m] (3,); None = it led to no target."""
        led = self._led
        if led is None:
            return None
        return self._model.forward(self._aim(led))[0]

    def forget(self) -> None:
        """Another task has begun."""
        self._led = self._sought = None

    def learn(self, execution: Execution, measured: FloatArray) -> EntryUpdate | None:
        """Take a stage that reached its end, at joint positions (n,); return what it teaches."""
        led, self._led = self._led, None
        sought, self._sought = self._sought, None
        if sought is not None:
            return self._revised(*sought)
        goal = execution.stage.goal
        if isinstance(goal, SearchGoal):
            self._sought = (led, measured) if led is not None and led.reused else None
            return None
        acts = isinstance(goal, TargetGoal) and not isinstance(goal, (TipGoal, PressGoal))
        if acts and execution.stage.allowed_contact:
            self._led = execution
        return None

    def _revised(self, led: Execution, measured: FloatArray) -> EntryUpdate | None:
        template, target, goal = led.template, led.target, led.stage.goal
        assert isinstance(goal, TargetGoal)
        if target is None:
            return None
        aim = self._aim(led)
        place, turned = self._model.forward(aim)
        offset = self._model.forward(measured)[0] - place
        offset -= (offset @ turned[:, 2]) * turned[:, 2]
        length = float(np.linalg.norm(offset))
        if not LEAST <= length <= FARTHEST:
            return None
        try:
            end = self._pressing.pressed(shifted_end(self._model, aim, SHARE * offset), goal.press)
        except SynthesisError:
            return None
        moved = joined(template, template.state(0.0), end, template.duration)
        entry_id, version = led.entry
        return EntryUpdate(
            decision=led.match.decision,
            operation=UpdateOperation.REVISE,
            entry_id=entry_id,
            entry_version=version,
            vector=led.match.vector,
            behavior=moved.to_behavior(led.stage.subtask, self._model.joint_names, target),
            execution=None,
            error=math.nan,
            false_hit=False,
            reason=f"a search found the target {length * 1e3:.2f} mm beside where it was sought;"
            f" {SHARE:.0%} of that",
        )

    def _aim(self, led: Execution) -> FloatArray:
        """Return the joint positions (n,) at which a motion meets its target."""
        goal = led.stage.goal
        assert isinstance(goal, TargetGoal)
        return self._pressing.relieved(led.template.end, goal.press)
