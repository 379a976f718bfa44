"""Where a robot's cache is kept.

``store_path`` empty = ``{robot_id}.sqlite3``. A relative path stands in the state folder, which is
``$ROS_HOME/kv_action_router`` where ROS_HOME is set, else ``$XDG_STATE_HOME/kv_action_router``,
else ``~/.local/state/kv_action_router``. ``{robot_id}`` is replaced, so that two robots never share
a file by default. ``:memory:`` = nothing is kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

IN_MEMORY = ":memory:"
DEFAULT = "{robot_id}.sqlite3"
FOLDER = "kv_action_router"


def state_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of relative paths, absolute; it need not exist."""
    for variable in ("ROS_HOME", "XDG_STATE_HOME"):
        if environment.get(variable):
            return Path(environment[variable]).expanduser().absolute() / FOLDER
    return Path("~/.local/state").expanduser().absolute() / FOLDER


def store_file(
    store_path: str, robot_id: str, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """Return the file that a parameter names, absolute; None = in memory.

    Args:
        store_path: see above.
        robot_id: identity of the robot; what no file's name may hold is percent-encoded.
        environment: variables of the process.
    """
    if store_path == IN_MEMORY:
        return None
    name = (store_path or DEFAULT).replace("{robot_id}", quote(robot_id, safe=""))
    return state_folder(environment) / Path(name).expanduser()
