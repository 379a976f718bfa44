"""The built workspace: what `make setup` promises and what ROS 2's tools look for."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

# A plain `colcon build` takes minutes: asked for by KV_PLAIN_BUILD=1, which CI sets.
INSTALLS = ["symlink", "copy"] if os.environ.get("KV_PLAIN_BUILD") else ["symlink"]

pytestmark = pytest.mark.timeout(960)


def clean_environment(**more: str) -> dict[str, str]:
    """An environment in which nothing was sourced."""
    return {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **more}


def run(command: list[str], **environment: str) -> str:
    """Run a command in a clean environment, outside the checkout, and return what it printed."""
    result = subprocess.run(
        command,
        cwd="/",
        env=clean_environment(**environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.strip()


@pytest.fixture(scope="session")
def python(checkout: Path) -> str:
    """The environment's interpreter, with a workspace beside it."""
    interpreter = checkout / ".venv/bin/python"
    if not (checkout / ".ws/install").is_dir() or not interpreter.exists():
        pytest.skip("no built workspace in this checkout: run `make setup`")
    return str(interpreter)


class TestInterpreter:
    """`.venv/bin/python FILE` needs nothing sourced."""

    def test_finds_messages_and_the_ament_index(self, python: str) -> None:
        code = (
            "import rclpy; from kv_action_router.msg import TaskKey;"
            "from kv_action_router.srv import QueryCache;"
            "from kv_action_router.action import ExecuteTask;"
            "from ament_index_python.packages import get_package_share_directory as share;"
            "from rclpy.serialization import serialize_message as s, deserialize_message as d;"
            "assert d(s(TaskKey()), TaskKey) == TaskKey(); print(share('kv_action_router'))"
        )
        assert run([python, "-c", code]).endswith("/.ws/install/share/kv_action_router")

    def test_children_find_them_without_a_second_start(self, python: str) -> None:
        code = (
            "import os, subprocess, sys;"
            "child = 'import os; from kv_action_router.msg import TaskKey;'"
            '        \'print(os.environ.get("_KV_WORKSPACE_REEXECUTED", "clean"))\';'
            "print(subprocess.check_output([sys.executable, '-c', child], text=True))"
        )
        assert run([python, "-c", code]) == "clean"

    def test_keeps_arguments_input_and_exit_code(self, python: str) -> None:
        code = "import sys; print(sys.argv[1:], sys.stdin.read()); sys.exit(7)"
        result = subprocess.run(
            [python, "-X", "utf8", "-c", code, "a b", "--c"],
            env=clean_environment(),
            input="text",
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert (result.returncode, result.stdout) == (7, "['a b', '--c'] text\n")

    def test_source_comes_before_the_installed_copy(self, python: str, checkout: Path) -> None:
        code = (
            "import os, kv_action_router.errors as e, kv_action_router.msg as m;"
            "print(os.path.realpath(e.__file__)); print(m.__file__)"
        )
        source, messages = run([python, "-c", code]).splitlines()
        assert source == str((checkout / "kv_action_router/errors.py").resolve())
        assert "/.ws/install/" in messages

    def test_source_folder_first_on_the_path_does_not_hide_messages(
        self, python: str, checkout: Path
    ) -> None:
        code = "from kv_action_router.msg import TaskKey; print(TaskKey.__name__)"
        assert run([python, "-c", code], PYTHONPATH=str(checkout)) == "TaskKey"

    def test_folders_of_the_checkout_pass_for_no_modules(self, python: str, checkout: Path) -> None:
        code = "import sys; print(sys.path)"
        assert repr(str(checkout)) not in run([python, "-c", code])


@pytest.fixture(scope="session", params=INSTALLS)
def prefix(
    request: pytest.FixtureRequest,
    python: str,
    checkout: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """Install prefix of a workspace, built both ways that colcon offers."""
    if request.param == "symlink":
        yield checkout / ".ws/install"
        return
    folder = tmp_path_factory.mktemp("plain")
    result = subprocess.run(
        ["timeout", "900", checkout / "tools/setup.sh", "plain-build", folder],  # ends children too
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    yield folder / "install"


class TestInstalledTree:
    """What `ros2 run`, `ros2 launch` and `ros2 interface` look for."""

    def share(self, prefix: Path) -> Path:
        return prefix / "share/kv_action_router"

    def test_package_is_in_the_index(self, prefix: Path) -> None:
        index = prefix / "share/ament_index/resource_index"
        assert (index / "packages/kv_action_router").is_file()
        assert (index / "rosidl_interfaces/kv_action_router").is_file()

    def test_executables(self, prefix: Path, checkout: Path) -> None:
        installed = prefix / "lib/kv_action_router"
        names = {file.name for file in (checkout / "scripts").iterdir()}
        assert {file.name for file in installed.iterdir()} == names
        assert all(os.access(installed / name, os.X_OK) for name in names)

    @pytest.mark.parametrize("folder", ["launch", "config"])
    def test_share_folders(self, prefix: Path, checkout: Path, folder: str) -> None:
        for file in (checkout / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                installed = self.share(prefix) / file.relative_to(checkout)
                assert installed.read_bytes() == file.read_bytes()

    def test_interfaces(self, prefix: Path, checkout: Path) -> None:
        for kind in ("msg", "srv", "action"):
            for file in (checkout / kind).iterdir():
                assert (self.share(prefix) / kind / file.name).exists(), file.name

    def test_modules_and_their_data(self, prefix: Path, checkout: Path) -> None:
        package = next(prefix.glob("l*/**/kv_action_router/__init__.py")).parent
        assert "extend_path" in (package / "__init__.py").read_text("utf-8"), "the generator's"
        data = [
            file
            for file in (checkout / "kv_action_router").rglob("*")
            if file.suffix in {".xml", ".yaml", ".npz", ".onnx"}
        ]
        assert data
        for file in [*data, checkout / "kv_action_router/errors.py"]:
            installed = package / file.relative_to(checkout / "kv_action_router")
            assert installed.read_bytes() == file.read_bytes()


def test_works_with_only_its_own_prefix(prefix: Path, python: str) -> None:
    """As after sourcing its setup file, without the source tree."""
    package = next(prefix.glob("l*/**/kv_action_router/__init__.py")).parent
    code = (
        "import sys; sys.path = [p for p in sys.path if '/.ws/' not in p];"
        f"sys.path.insert(0, {str(package.parent)!r});"
        "import kv_action_router.errors as e; from kv_action_router.msg import TaskKey;"
        "print(e.__file__, TaskKey.__name__)"
    )
    printed = run([python, "-c", code], LD_LIBRARY_PATH=str(prefix / "lib"))
    assert printed == f"{package / 'errors.py'} TaskKey"
