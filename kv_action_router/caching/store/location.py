"""Where a robot's cache is kept.

``store_path`` empty = ``{robot_id}.sqlite3``. A relative path stands in ``cache`` in the package's
state folder (``identity.state_folder``). ``{robot_id}`` is replaced, so that two robots never share
a file by default. ``:memory:`` = nothing is kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from kv_action_router.identity import state_folder

IN_MEMORY = ":memory:"
DEFAULT = "{robot_id}.sqlite3"


def store_file(
    store_path: str, robot_id: str, environment: Mapping[str, str] = os.environ
) -> Path | None:
    """Return the file that a parameter names; None = in memory.

    Args:
        store_path: see above.
        robot_id: identity of the robot; what no file's name may hold is percent-encoded.
        environment: variables of the process.
    """
    if store_path == IN_MEMORY:
        return None
    name = (store_path or DEFAULT).replace("{robot_id}", quote(robot_id, safe=""))
    return state_folder(environment) / "cache" / Path(name).expanduser()
