"""One exception root, one subclass a kind of failure, each with its ``error_code``.

The core raises these; only a ROS shell turns them into codes and messages. Blocks: encoding 100,
caching 200, synthesis 300, injection 400, monitoring 500; 1 to 99 belong to no stage.
"""

from __future__ import annotations


class RouterError(Exception):
    """Root of all errors that this package raises on purpose."""

    error_code: int = 1


class ConfigError(RouterError, ValueError):
    """A configuration value is outside its limits; the message names field, limit and value."""

    error_code = 2

    def __init__(self, field: str, limit: str, value: object) -> None:
        super().__init__(f"{field} must be {limit}, got {value!r}")
        self.field = field
        self.limit = limit
        self.value = value


class InputError(RouterError, ValueError):
    """A sample or request is not usable; the message names field, limit and value."""

    error_code = 3

    def __init__(self, field: str, limit: str, value: object) -> None:
        super().__init__(f"{field} must be {limit}, got {value!r}")
        self.field = field
        self.limit = limit
        self.value = value


class RobotModelError(RouterError):
    """The robot's description is missing, incomplete or contradictory."""

    error_code = 4


class TaskDefinitionError(RouterError):
    """A task definition is missing, incomplete or contradictory."""

    error_code = 5


class SimulationError(RouterError):
    """The simulator cannot do what was asked, or cannot render."""

    error_code = 6


class EncodingError(RouterError):
    """Stage 1 could not make a key."""

    error_code = 100


class ImageError(EncodingError):
    """An image has an encoding, size or calibration that cannot be used."""

    error_code = 101


class MissingJointsError(EncodingError):
    """Required joints have not been seen yet, or not lately."""

    error_code = 102


class KeyInvalidError(EncodingError):
    """A key is zero, not finite, or of the wrong size."""

    error_code = 103


class CheckpointError(EncodingError, ValueError):
    """Weights cannot be used; the message names file or field, limit and value."""

    error_code = 104

    def __init__(self, field: str, limit: str, value: object) -> None:
        super().__init__(f"{field} must be {limit}, got {value!r}")


class CachingError(RouterError):
    """Stage 2 could not answer or change the cache."""

    error_code = 200


class EntryNotFoundError(CachingError):
    """No such entry, domain or layer; the message lists near names."""

    error_code = 201


class EntryInvalidError(CachingError):
    """An entry cannot be stored as it is."""

    error_code = 202


class StaleVersionError(CachingError):
    """Compare-and-set on a version that is no longer in force."""

    error_code = 203


class DomainError(CachingError):
    """A domain's name or its sharing is not allowed."""

    error_code = 204


class StoreError(CachingError):
    """The cache's file cannot be read or written."""

    error_code = 205


class StoreInUseError(StoreError):
    """Another process has the cache's file; the message names it."""

    error_code = 206


class IdentityError(CachingError):
    """Another robot on the network claims the same identity."""

    error_code = 207


class SynthesisError(RouterError):
    """Stage 3 could not make a motion."""

    error_code = 300


class UnreachableError(SynthesisError):
    """The target cannot be reached inside joint limits."""

    error_code = 301


class LimitError(SynthesisError):
    """A motion would leave position, velocity, acceleration or jerk limits."""

    error_code = 302


class ReanchorError(SynthesisError):
    """A cached motion cannot be joined to the measured state inside limits."""

    error_code = 303


class CollisionError(SynthesisError):
    """A motion would touch an obstacle or the robot itself."""

    error_code = 304


class TaskTransitionError(SynthesisError):
    """The task stack cannot do this in its present state."""

    error_code = 305


class PolicyError(SynthesisError):
    """A policy failed, was too slow, or answered what is no motion."""

    error_code = 306


class PlanPendingError(SynthesisError):
    """A motion has been asked for and is not there yet: ask again with the next match."""

    error_code = 307


class InjectionError(RouterError):
    """Stage 4 could not send a command."""

    error_code = 400


class ChunkRefusedError(InjectionError):
    """A chunk is late, of another epoch, out of order or not valid."""

    error_code = 401


class OutputError(InjectionError):
    """An output adapter cannot drive the robot as configured."""

    error_code = 402


class MonitoringError(RouterError):
    """Stage 5 could not evaluate a condition."""

    error_code = 500


class ConditionError(MonitoringError):
    """A condition names an unknown signal, operator or response."""

    error_code = 501


class ResponseError(MonitoringError):
    """A response to a failure could not be carried out."""

    error_code = 502


class CalibrationError(MonitoringError):
    """The drives' constants could not be fitted, or the fit was not taken over."""

    error_code = 503
