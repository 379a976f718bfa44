"""``ROS_DOMAIN_ID``: which network of nodes a process belongs to. Not a robot's identity."""

from __future__ import annotations

import os
from collections.abc import Mapping

from kv_action_router.errors import ConfigError

VARIABLE = "ROS_DOMAIN_ID"
LARGEST = 232  # the ports of the next one would lie above 65535 (7400 + 250 * domain)
SAFE = 101  # above it the ports run into those that Linux gives to outgoing connections


def check_domain_id(environment: Mapping[str, str] = os.environ) -> str:
    """Return what people should know of the domain; empty = nothing. Unset means 0.

    Raises:
        ConfigError: it is set to something that is no domain.
    """
    value = environment.get(VARIABLE)
    if value is None:
        return ""
    if not (value.isascii() and value.isdecimal() and len(value) <= 3 and int(value) <= LARGEST):
        limit = f"an integer from 0 to {LARGEST}, or not be set (= 0)"
        raise ConfigError(VARIABLE, limit, value[:80])
    if int(value) > SAFE:
        return (
            f"{VARIABLE} is {value}: above {SAFE} its ports may be taken by outgoing connections "
            f"of this machine, and nodes then do not find each other"
        )
    return ""
