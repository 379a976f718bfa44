"""YAML files that come with the package or are one's own: found by name or by path, and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from kv_action_router.errors import TaskDefinitionError
from kv_action_router.tasks.conditions import near_names


def folders(kind: str) -> tuple[Path, ...]:
    """Return the folders that hold files of a kind: source tree, then installation."""
    here = Path(__file__).resolve()
    candidates = [here.parents[2] / "config" / kind]
    candidates += [folder / "share/kv_action_router/config" / kind for folder in here.parents]
    return tuple(folder for folder in candidates if folder.is_dir())


def available(kind: str) -> tuple[str, ...]:
    """Return the names of the files of a kind that come with the package."""
    return tuple(sorted({path.stem for folder in folders(kind) for path in folder.glob("*.yaml")}))


def read(kind: str, what: str, name_or_path: str) -> tuple[Any, str]:
    """Return the data of a file, and its path for messages.

    Args:
        kind: folder of ``config`` that names are looked up in.
        what: a file of it holds, for messages.
        name_or_path: name of a file of the package, or path of any file.

    Raises:
        TaskDefinitionError: there is none, or it cannot be read.
    """
    if name_or_path.endswith((".yaml", ".yml")):
        path = Path(name_or_path)
    else:
        if not name_or_path or Path(name_or_path).name != name_or_path:
            raise TaskDefinitionError(
                f"{what} must be a name in config/{kind} or the path of a .yaml file,"
                f" got {name_or_path!r}"
            )
        files = [folder / f"{name_or_path}.yaml" for folder in folders(kind)]
        path = next((file for file in files if file.is_file()), Path(f"{name_or_path}.yaml"))
    if not path.is_file():
        hint = near_names(path.stem, available(kind))
        raise TaskDefinitionError(f"{what} must be a known name, got {name_or_path!r}{hint}")
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8")), str(path)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TaskDefinitionError(f"{path}: cannot be read: {error}") from error
