"""tools/setup.sh: what it says on a machine that lacks something, and that it works only once."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = (
    "bash",
    "cat",
    "cut",
    "dirname",
    "echo",
    "flock",
    "find",
    "mkdir",
    "sed",
    "sha256sum",
    "sort",
    "xargs",
)


def find_python(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Ask for the interpreter on a machine whose distribution brings none."""
    script = "source tools/machine.sh; distribution_python=/absent; find_python"
    return subprocess.run(
        ["bash", "-euc", f'checkout="$PWD"; {script}'],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def setup(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script without a sourced ROS 2."""
    hidden = ("AMENT_PREFIX_PATH", "ROS_DISTRO", "PYTHON")
    inherited = {k: v for k, v in os.environ.items() if k not in hidden}
    return subprocess.run(
        ["bash", checkout / "tools/setup.sh", *arguments],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A folder with nothing but the tools that every machine has, for PATH."""
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (tmp_path / tool).symlink_to(found)
    return tmp_path


def fake_python(folder: Path, minor: int) -> None:
    """Put a `python3` of another version there: it answers what the script asks first."""
    file = folder / "python3"
    file.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.{minor}.0" || echo {minor}\n'
    )
    file.chmod(0o755)


def test_names_what_is_missing_with_the_command(checkout: Path, bare_path: Path) -> None:
    (bare_path / "python3").symlink_to(Path(sys.executable).resolve())
    result = setup(checkout, "install-command", PATH=str(bare_path))
    assert result.returncode == 0, result.stderr
    assert "apt-get install -y --no-install-recommends g++ cmake make" in result.stdout


@pytest.mark.parametrize("minor", [8, 10])
def test_refuses_a_python_that_is_too_old(checkout: Path, bare_path: Path, minor: int) -> None:
    fake_python(bare_path, minor)
    result = find_python(checkout, PATH=str(bare_path))
    assert result.returncode == 1
    assert "No Python 3.11 to 3.13 found" in result.stderr
    assert f"Python 3.{minor}.0 is there" in result.stderr


def test_says_that_there_is_no_python(checkout: Path, bare_path: Path) -> None:
    result = find_python(checkout, PATH=str(bare_path))
    assert result.returncode == 1
    assert "no python3 is there" in result.stderr


def test_a_sourced_ros_with_an_old_python(checkout: Path, bare_path: Path) -> None:
    fake_python(bare_path, 10)
    (bare_path / "share/rclpy").mkdir(parents=True)
    result = find_python(
        checkout,
        PATH=str(bare_path),
        AMENT_PREFIX_PATH=str(bare_path),
        ROS_DISTRO="humble",
    )
    assert result.returncode == 1
    assert "The sourced ROS 2 humble runs on Python 3.10.0" in result.stderr


def test_unknown_task_prints_the_usage(checkout: Path) -> None:
    result = setup(checkout, "nonsense")
    assert result.returncode == 2
    assert "tools/setup.sh install-command" in result.stderr


def test_a_second_run_does_no_work(checkout: Path) -> None:
    stamp = checkout / ".ws/stamp"
    if not stamp.exists():
        pytest.skip("no built workspace in this checkout: run `make setup`")
    before = stamp.stat().st_mtime_ns
    result = setup(checkout)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert stamp.stat().st_mtime_ns == before


@pytest.fixture
def relocate_exports(checkout: Path) -> ModuleType:
    """The tool as a module."""
    spec = importlib.util.spec_from_file_location(
        "relocate", checkout / "tools/relocate_exports.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_exports_are_relocated(relocate_exports: ModuleType) -> None:
    builder = "/opt/python/cp311-cp311"
    exported = (
        f'"{builder}/include/python3.11;'
        f'{builder}/lib/python3.11/site-packages/numpy/_core/include;/usr/include"'
    )
    assert (
        relocate_exports.relocate(exported, "/here/include", "/here/numpy")
        == '"/here/include;/here/numpy;/usr/include"'
    )


def test_relocating_twice_changes_nothing(relocate_exports: ModuleType) -> None:
    text = relocate_exports.relocate("/opt/python/cp312-cp312/include/python3.12", "/a", "/b")
    assert relocate_exports.relocate(text, "/a", "/b") == text == "/a"
