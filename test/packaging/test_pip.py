"""What `pip install .` brings: the modules, their data and the configuration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("setuptools", reason="setuptools is not in this environment")


@pytest.fixture(scope="module")
def installed(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what setup.py installs, without its dependencies."""
    folder = tmp_path_factory.mktemp("pip")
    commands = ["build_py", "--build-lib", folder, "install_data", "--install-dir", folder]
    subprocess.run(
        [sys.executable, "setup.py", "-q", *commands], cwd=checkout, check=True, timeout=60
    )
    return folder


def test_modules_and_their_data(installed: Path, checkout: Path) -> None:
    for file in (checkout / "kv_action_router").rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            assert (installed / file.relative_to(checkout)).is_file(), file


def test_configuration_is_where_the_code_looks(installed: Path, checkout: Path) -> None:
    for file in (checkout / "config").rglob("*"):
        if file.is_file():
            share = installed / "share/kv_action_router"
            assert (share / file.relative_to(checkout)).read_bytes() == file.read_bytes()


def test_the_installed_copy_works_without_ros(installed: Path) -> None:
    code = (
        "import sys; sys.modules['rclpy'] = None\n"
        "from kv_action_router.robots.model import RobotModel\n"
        "from kv_action_router.tasks.definition import load_task\n"
        "print(load_task.__code__.co_filename)\n"
        "print(load_task('touch_target').name, RobotModel.load('ur5e').n)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(installed)!r})\n{code}"],
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.splitlines()
    assert printed == [f"{installed}/kv_action_router/tasks/definition.py", "touch_target 6"]
