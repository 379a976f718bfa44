"""Rules: which condition over which signals hits which layer of the cache, and asks for what.

They are the rows of ``config/conditions.yaml`` (``rule_file`` reads it, ``docs/conditions.md``
explains it). The failure monitor judges every row, the injector those that hit the execution layer,
in its own tick.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, IntEnum
from fnmatch import fnmatchcase

from kv_action_router.tasks.predicates import Condition
from kv_action_router.tasks.signals import SIGNALS


class Layer(Enum):
    """Layer of the cache that a condition hits."""

    TASK = "task"  # what to do: the stage's goal is reached, or what is known of the intent is void
    BEHAVIOR = "behavior"  # how to do it: the entry behind the motion in force
    EXECUTION = "execution"  # what the drive may do: its value in the injector


class Response(Enum):
    """What a condition asks for."""

    NONE = "none"  # report only
    COMPLETE = "complete"  # the stage under way has reached its goal
    INVALIDATE = "invalidate"  # the layer's value is void: thrown out, or no longer confident
    DERATE = "derate"  # the injector goes over to the drive's derated limits
    SLOW = "slow"  # motions are run slower on their path, until the condition clears
    INTERRUPT = "interrupt"  # stop on the path, to be resumed
    BRAKE = "brake"  # latched stop: a ramp on the path
    FAIL_SAFE = "fail_safe"  # latched stop; the injector goes to its fail-safe value


STOPPING = frozenset({Response.BRAKE, Response.FAIL_SAFE})
LASTING = frozenset({Response.SLOW, Response.INTERRUPT})  # undone, or repeated, as it goes on


class Severity(IntEnum):
    """How bad it is (``FailureEvent.SEVERITY_*``)."""

    INFO = 0
    WARNING = 1
    ERROR = 2
    FATAL = 3


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table.

    Attributes:
        condition: over named signals; its name is the rule's.
        responses: all of them are carried out, in this order.
        severity: of its events.
        error_code: of its events, from 500 to 599.
        message: for people; ``{source}``, ``{value}``, ``{limit}`` and ``{unit}`` are filled in.
        layer: of the cache that is hit; None = none is.
        speed_scale: share of the planned speed that ``slow`` asks for; 1 = it is not asked for.
        resumes: an interruption by this row ends when its condition clears.
        inserts: sequence that an interruption by this row inserts, a task of ``config/tasks``;
            empty = the task only waits.
        subtask: pattern of the subtasks that ``complete`` may end, ``*`` for any characters.
    """

    condition: Condition
    responses: tuple[Response, ...]
    severity: Severity
    error_code: int
    message: str
    layer: Layer | None = None
    speed_scale: float = 1.0
    resumes: bool = False
    subtask: str = "*"
    inserts: str = ""

    @property
    def name(self) -> str:
        """Name of the condition."""
        return self.condition.name

    @property
    def stops(self) -> bool:
        """Whether the robot is brought to rest and stays there."""
        return not STOPPING.isdisjoint(self.responses)

    @property
    def acts_at_once(self) -> bool:
        """Whether a response is carried out when the condition begins to hold, and that is all."""
        return not LASTING.union((Response.NONE,)).issuperset(self.responses)

    @property
    def lasts(self) -> bool:
        """Whether a response must be undone, or asked for again, as time goes on."""
        return not LASTING.isdisjoint(self.responses)

    def ends(self, subtask: str) -> bool:
        """Say whether the row ends a stage of this subtask."""
        return Response.COMPLETE in self.responses and fnmatchcase(subtask, self.subtask)

    def describe(self, source: str, value: float) -> str:
        """Return the message with the numbers filled in."""
        signal = self.condition.signal
        return self.message.format(
            source=source or "the robot",
            value=f"{value:.4g}",
            limit=f"{self.condition.limit:.4g}",
            unit=SIGNALS[signal].unit if signal in SIGNALS else "",
        )


def execution_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rows that hit the execution layer."""
    return tuple(rule for rule in rules if rule.layer is Layer.EXECUTION)
