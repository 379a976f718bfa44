"""Lets the environment's Python find ROS 2 and the built workspace without sourcing anything.

`make setup` copies this module into the environment's site-packages beside a `.pth` that imports
it, so it runs at the start of every interpreter of that environment. It expects the environment at
`<checkout>/.venv` and the workspace at `<checkout>/.ws` and changes nothing where they are absent.

The dynamic linker reads LD_LIBRARY_PATH only when a process starts. Where a needed folder is not on
it, the interpreter replaces itself once (same process id, same arguments); children inherit the
variable and start directly. Costs about 20 ms for the first process of a tree.
"""

import json
import os
import sys
import types
from pathlib import Path

_GUARD = "_KV_WORKSPACE_REEXECUTED"  # holds the process id, so that a child is not taken for it


def _existing(paths: list[Path]) -> list[str]:
    return [str(path) for path in paths if path.is_dir()]


def _joined_first(first: list[str], variable: str) -> str:
    """Value of `variable` with the folders `first` moved or added to its front."""
    rest = [p for p in os.environ.get(variable, "").split(os.pathsep) if p and p not in first]
    return os.pathsep.join(first + rest)


def _apply_underlay(environment: Path) -> list[Path]:
    """Restore what the ROS 2 that was sourced at set-up had exported; return its libraries."""
    record = environment / "underlay.json"
    if not record.is_file():
        return []
    exported = json.loads(record.read_text(encoding="utf-8"))
    libraries = exported.pop("LD_LIBRARY_PATH")
    for variable, folders in exported.items():
        present = os.environ.get(variable, "").split(os.pathsep)
        missing = [folder for folder in folders if folder not in present]
        if not missing:
            continue
        os.environ[variable] = os.pathsep.join([*filter(None, present), *missing])
        if variable == "PYTHONPATH":
            sys.path.extend(missing)
    return [Path(folder) for folder in libraries]


def _reexecute_with(library_folders: list[str]) -> None:
    present = os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    if os.environ.pop(_GUARD, "") == str(os.getpid()):
        return  # something strips the variable: go on, the failing import will name the library
    if not sys.executable or not sys.orig_argv or set(library_folders) <= set(present):
        return
    os.environ["LD_LIBRARY_PATH"] = _joined_first(library_folders, "LD_LIBRARY_PATH")
    os.environ[_GUARD] = str(os.getpid())
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ)


def _main() -> None:
    environment = Path(sys.prefix)
    workspace = environment.parent / ".ws"
    prefix = workspace / "install"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site_packages = environment / "lib" / version / "site-packages"

    underlay = _apply_underlay(environment)
    wheels = (environment / "lib" / "librcl.so").exists()
    libraries = [prefix / "lib", *underlay]
    if wheels:
        libraries += [environment / "lib", *sorted(site_packages.glob("ros_*.libs"))]
    _reexecute_with(_existing(libraries))

    # The wheels bring a start-up hook of their own that would replace the process a second time
    # and mark all its children; the lines above did its work.
    sys.modules.setdefault("ros_wheels_bootstrapper", types.ModuleType("ros_wheels_bootstrapper"))

    prefixes = _existing([prefix, environment] if wheels else [prefix])
    if prefixes:
        os.environ["AMENT_PREFIX_PATH"] = _joined_first(prefixes, "AMENT_PREFIX_PATH")
    distro = environment / "ros_distro"
    if distro.is_file():
        os.environ.setdefault("ROS_DISTRO", distro.read_text(encoding="utf-8").strip())

    # The source tree first, so that an edited module needs no rebuild; then the generated messages.
    sys.path[:0] = _existing(
        [
            workspace / "python",
            prefix / "lib" / version / "site-packages",
            prefix / "local" / "lib" / version / "dist-packages",
        ]
    )


_main()
