"""What a task is: stages with goals and physical ends (``definition`` reads them from YAML)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kv_action_router.contracts import Float32Array, FloatArray
from kv_action_router.errors import TaskDefinitionError
from kv_action_router.tasks.intent import intent_id, intent_key
from kv_action_router.tasks.predicates import Condition
from kv_action_router.tasks.signals import SHARPNESS


@dataclass(frozen=True, slots=True)
class TargetGoal:
    """Tool down at an offset from the perceived target.

    Attributes:
        offset: of the tool's tip from the target, in the base frame [m] (3,).
        line: the tip goes there on a straight line.
        speed_limit: of the tip on a line [m/s]; None = the synthesizer's own.
        press: force along the tool with which the tip ends on what it meets there [N]: the line's
            set-point goes on by as much as the arm's springs need for that.
    """

    offset: FloatArray
    line: bool = False
    speed_limit: float | None = None
    press: float = 0.0


@dataclass(frozen=True, slots=True)
class TipGoal(TargetGoal):
    """Tool down at an offset from where the tip is when the stage begins; no target is needed.

    With no offset the arm stays where it is. ``needs_target`` of its stage is false.
    """


@dataclass(frozen=True, slots=True)
class PressGoal(TipGoal):
    """The tip is pressed on what it stands on, and goes along ``offset`` while it is.

    The press is the force that the arm's own drives give at a set-point that far beside where the
    tip is: without their integral part (``execution`` of the stage says so) they are springs.

    Attributes:
        rate: at which the press is built up [N/s]; 0 = at once, without a blow.
    """

    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchGoal(PressGoal):
    """Search across the tool's axis, on a spiral of Archimedes around where the tip was sent.

    That is where the stage before has sent it, or where the tip is, if that one had no such place.

    Attributes:
        radius: of the area that is searched [m].
        pitch: distance of two windings [m].
        speed: of the tip [m/s].
    """

    radius: float = 0.002
    pitch: float = 0.0005
    speed: float = 0.005


@dataclass(frozen=True, slots=True)
class TurnGoal(PressGoal):
    """Turn a spindle, and follow what it drives in.

    Attributes:
        joint: that turns, without a prefix.
        turns: at most; positive = as the joint counts.
        speed: of the joint [rad/s].
        pitch: way along the tool for a turn [m].
    """

    joint: str = ""
    turns: float = 1.0
    speed: float = 1.0
    pitch: float = 0.0


@dataclass(frozen=True, slots=True)
class ConfigurationGoal:
    """Joint positions: a name that the robot's model knows (``home``), or values [rad] (n,)."""

    name: str = ""
    positions: tuple[float, ...] = ()


Goal = TargetGoal | ConfigurationGoal


@dataclass(frozen=True, slots=True)
class TimedOutput:
    """An auxiliary output of a stage: ``time`` after the motion's beginning [s]."""

    name: str
    time: float
    value: float


@dataclass(frozen=True, slots=True)
class StageDefinition:
    """One stage of a task.

    Attributes:
        name: unique in the task.
        subtask: name and version that the cache is asked for, e.g. ``touch_approach_v1``.
        goal: where the motion ends.
        end: conditions of which any one ends the stage.
        failure: conditions of which any one fails the task.
        timeout: running time after which the stage has failed [s].
        velocity_scale: share of the planning limits that the stage uses, 0 to 1.
        needs_target: the stage acts on the perceived target.
        needs_image: its decision must come from an image taken after it was asked for.
        follow_target: the motion's end follows the target while it runs.
        allowed_contact: what the stage may touch; empty = nothing.
        tolerance: distance from the goal above which a result counts as wrong [m].
        path_tolerance: distance of any joint from the path of its set-point above which a motion
            counts as wrong, though it reached the goal [rad]; infinite = it is not judged.
        outputs: timed auxiliary outputs.
        execution: drive, ``*`` = every other one, -> slot of its execution value -> number that is
            in force while the stage lasts.
    """

    name: str
    subtask: str
    goal: Goal
    end: tuple[Condition, ...]
    failure: tuple[Condition, ...] = ()
    timeout: float = 30.0
    velocity_scale: float = 1.0
    needs_target: bool = False
    needs_image: bool = False
    follow_target: bool = False
    allowed_contact: str = ""
    tolerance: float = 0.01
    path_tolerance: float = math.inf
    outputs: tuple[TimedOutput, ...] = ()
    execution: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def presses(self) -> bool:
        """Whether the set-point is beside where the arm is on purpose: that is what presses."""
        goal = self.goal
        return isinstance(goal, PressGoal) or (isinstance(goal, TargetGoal) and goal.press != 0.0)

    @property
    def needs_sharpness(self) -> bool:
        """Whether a condition judges how sharp the image is."""
        return any(SHARPNESS in item.signals for item in (*self.end, *self.failure))

    def condition(self, name: str) -> Condition | None:
        """Return the end or failure condition of a name."""
        return next((item for item in (*self.end, *self.failure) if item.name == name), None)


@dataclass(frozen=True, slots=True)
class OnFailure:
    """What is done when a stage that may touch something has failed.

    Attributes:
        sequence: task that is run before the failed one answers: it lets go and withdraws.
        retried: stages after whose failure the task is tried again, when the sequence has ended.
        retry_from: stage that it then goes on at; empty = nothing is retried.
        retries: of one task, at most.
    """

    sequence: TaskDefinition
    retried: tuple[str, ...] = ()
    retry_from: str = ""
    retries: int = 0


@dataclass(frozen=True)
class TaskDefinition:
    """A task: its intent and its stages, in order.

    Attributes:
        name: unique.
        intent_text: what is meant, for people.
        stages: at least one, with distinct names.
        timeout: of the whole task, running time [s]; 0 = none beyond the stages' own.
        target: which of the encoder's targets the stages act on; empty = its first.
        on_failure: what is done when a stage that may touch something has failed; None = the task
            ends where it is.
        intent_id: readable identifier of the intent.
        intent: its key (128,), of unit norm.

    Raises:
        TaskDefinitionError: no stage, a name twice, or an ``on_failure`` that can't be.
    """

    name: str
    intent_text: str
    stages: tuple[StageDefinition, ...]
    timeout: float = 0.0
    target: str = ""
    on_failure: OnFailure | None = None
    intent_id: str = field(init=False)
    intent: Float32Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise TaskDefinitionError("task: name must not be empty")
        if not self.stages:
            raise TaskDefinitionError(
                f"task {self.name!r}: stages must hold at least one, got none"
            )
        names = [stage.name for stage in self.stages]
        for name in names:
            if names.count(name) > 1:
                raise TaskDefinitionError(
                    f"task {self.name!r}: stage names must be unique, got {name!r} twice"
                )
        if not (np.isfinite(self.timeout) and self.timeout >= 0.0):
            raise TaskDefinitionError(
                f"task {self.name!r}: timeout must be at least 0 s, got {self.timeout!r}"
            )
        if self.on_failure is not None:
            self._check(self.on_failure, names)
        object.__setattr__(self, "intent_id", intent_id(self.intent_text))
        object.__setattr__(self, "intent", intent_key(self.intent_text))

    def _check(self, on_failure: OnFailure, names: list[str]) -> None:
        place = f"task {self.name!r}: on_failure"
        if on_failure.sequence.on_failure is not None:
            raise TaskDefinitionError(
                f"{place}: inserts must name a task without on_failure of its own,"
                f" got {on_failure.sequence.name!r}"
            )
        if not on_failure.retries:
            return
        for name in (on_failure.retry_from, *on_failure.retried):
            if name not in names:
                raise TaskDefinitionError(
                    f"{place}: retry must name stages of the task ({', '.join(names)}),"
                    f" got {name!r}"
                )
        first = names.index(on_failure.retry_from)
        for name in on_failure.retried:
            if names.index(name) < first:
                raise TaskDefinitionError(
                    f"{place}: retry: from must not be behind a stage that is retried"
                    f" ({name!r}), got {on_failure.retry_from!r}"
                )
