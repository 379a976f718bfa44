"""ROS parameters made from configuration dataclasses, so that each is declared once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from rcl_interfaces.msg import ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from kv_action_router.configuration import Configuration, ParameterInfo
from kv_action_router.errors import ConfigError

C = TypeVar("C", bound=Configuration)


def declare(node: Node, configuration: type[Configuration], prefix: str = "") -> None:
    """Declare every field of a configuration dataclass as a ROS parameter.

    Parameters are typed by the dataclass, not by rcl: an integer is accepted where a float is
    wanted, and a wrong type ends in an error that names the parameter instead of a dead process.
    """
    for name, (default, info) in configuration.parameters().items():
        value = list(default) if isinstance(default, tuple) else default
        node.declare_parameter(prefix + name, value, _descriptor(default, info))


def load(node: Node, configuration: type[C], prefix: str = "") -> C:
    """Return the configuration with the node's present parameter values.

    Raises:
        ConfigError: naming the parameter, its limit and the value received.
    """
    values = {name: node.get_parameter(prefix + name).value for name in configuration.parameters()}
    try:
        return configuration(**values)
    except ConfigError as error:
        raise ConfigError(prefix + error.field, error.limit, error.value) from None


def guard_changes(
    node: Node, configuration: type[Configuration], configured: Callable[[], bool]
) -> None:
    """Refuse parameter changes that are out of bounds, or that would have no effect any more."""
    known = configuration.parameters()

    def check(changes: list[Parameter[Any]]) -> SetParametersResult:
        current = {name: node.get_parameter(name).value for name in known}
        for change in changes:
            if change.name not in known:
                continue
            if known[change.name][1].read_only and configured():
                reason = f"{change.name} takes effect at configure: clean the node up first"
                return SetParametersResult(successful=False, reason=reason)
            current[change.name] = change.value
        try:
            configuration(**current)
        except ConfigError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    node.add_on_set_parameters_callback(check)


def _descriptor(default: Any, info: ParameterInfo) -> ParameterDescriptor:
    # Bounds stand in the constraints, not in rcl's ranges: a range violated by a parameter file
    # raises while the node is being built, where nobody could answer with a failed transition.
    kind = type(default[0] if isinstance(default, tuple) and default else default).__name__
    constraints = [f"list of {kind}" if isinstance(default, tuple) else kind]
    if info.minimum is not None:
        constraints.append(f"at least {info.minimum}")
    if info.maximum is not None:
        constraints.append(f"at most {info.maximum}")
    if info.choices:
        constraints.append(f"one of {', '.join(info.choices)}")
    if info.read_only:
        constraints.append("takes effect at configure")
    unit = f" [{info.unit}]" if info.unit else ""
    return ParameterDescriptor(
        description=info.description + unit,
        additional_constraints="; ".join(constraints),
        dynamic_typing=True,
    )
