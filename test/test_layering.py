"""ROS stays in the shells. Read from the source, so that it is tested without ROS, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "kv_action_router"
GENERATED = ("kv_action_router.msg", "kv_action_router.srv", "kv_action_router.action")
ROS = (
    "ament_index_python",
    "builtin_interfaces",
    "cv_bridge",
    "launch",
    "launch_ros",
    "rcl_interfaces",
    "rclpy",
    "rosidl_runtime_py",
    "std_srvs",
)


def is_ros(module: str) -> bool:
    """Does importing this module need ROS 2 or the generated interfaces?"""
    root = module.split(".")[0]
    return (
        root in ROS
        or root.endswith("_msgs")
        or any(module == name or module.startswith(f"{name}.") for name in GENERATED)
    )


def imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Names of all modules that the code imports, also inside functions; relative ones resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                parent = package.split(".")[: len(package.split(".")) - node.level + 1]
                module = ".".join([*parent, *filter(None, [module])])
            yield module
            # `from kv_action_router import msg` imports a module, too
            yield from (f"{module}.{alias.name}" for alias in node.names)


def is_shell(file: Path) -> bool:
    """May this file import ROS?"""
    inside = file.relative_to(PACKAGE)
    return inside.parts[0] in ("ros", "rqt") or inside.name == "node.py"


def core_files() -> list[Path]:
    """All files that must run without ROS."""
    return sorted(file for file in PACKAGE.rglob("*.py") if not is_shell(file))


@pytest.mark.parametrize(
    "file", core_files(), ids=lambda file: str(file.relative_to(PACKAGE.parent))
)
def test_core_imports_no_ros(file: Path) -> None:
    package = ".".join(file.parent.relative_to(PACKAGE.parent).parts)
    found = sorted(set(filter(is_ros, imports(ast.parse(file.read_text("utf-8")), package))))
    assert not found, f"{file.relative_to(PACKAGE.parent)} imports {', '.join(found)}"


def test_generator_owns_the_interface_folders() -> None:
    """Folders of these names in the source would hide the generated messages."""
    assert not [name for name in ("msg", "srv", "action") if (PACKAGE / name).exists()]


def test_package_init_only_extends_its_path() -> None:
    body = ast.parse((PACKAGE / "__init__.py").read_text("utf-8")).body
    assert isinstance(body[0], ast.Expr), "a docstring"
    assert [ast.unparse(statement) for statement in body[1:]] == [
        "from pkgutil import extend_path",
        "__path__ = extend_path(__path__, __name__)",
    ]


@pytest.mark.parametrize(
    ("code", "package", "found"),
    [
        ("import rclpy.node", "kv_action_router.caching", True),
        ("def f():\n    from sensor_msgs.msg import Image", "kv_action_router.caching", True),
        ("from ..msg import TaskKey", "kv_action_router.caching", True),
        ("from kv_action_router import srv", "kv_action_router.caching", True),
        ("from .match import Matcher", "kv_action_router.caching", False),
        ("from ..contracts import TaskKey", "kv_action_router.caching", False),
    ],
)
def test_the_check_sees_every_form_of_import(code: str, package: str, found: bool) -> None:
    assert any(map(is_ros, imports(ast.parse(code), package))) is found
