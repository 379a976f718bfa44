"""Environment variables that give a process its Fast DDS profile and its discovery range.

Where only this machine is to be discovered, ROS's own setting would undo the profiles: then
rmw_fastrtps adds a shared memory transport of the default size, and a second UDP transport, to
every process (``participant.cpp``, Jazzy and Kilted). Two profiles bind the sockets to the loopback
interface instead, and the processes are told the range that leaves the transports alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
LOCALHOST_ONLY = "ROS_LOCALHOST_ONLY"  # its predecessor, which still wins where it is 1
_OLD_NAMES = ("humble", "iron", "jazzy")


def dds_environment(
    folder: Path, *, images: bool, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return what a process needs.

    Args:
        folder: of the profiles.
        images: whether it sends or receives any, through shared memory.
        environment: what people have set.
    """
    chosen = {}
    local = environment.get(LOCALHOST_ONLY) == "1" or environment.get(RANGE) == "LOCALHOST"
    if local:
        chosen = {RANGE: "SUBNET", LOCALHOST_ONLY: "0"}  # of the loopback interface
    name = "fastdds" + ("" if images else "_udp") + ("_loopback" if local else "")
    # Fast DDS 2 and 3 name it differently, and version 3 reads both: setting both loads the file
    # twice.
    old = environment.get("ROS_DISTRO", "") in _OLD_NAMES
    variable = "FASTRTPS_DEFAULT_PROFILES_FILE" if old else "FASTDDS_DEFAULT_PROFILES_FILE"
    return {**chosen, variable: str(folder / f"{name}.xml")}
