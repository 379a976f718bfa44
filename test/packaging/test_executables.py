"""One list of executables: scripts/ for ROS 2, console scripts for pip."""

from __future__ import annotations

import ast
import os
from pathlib import Path


def console_scripts(checkout: Path) -> dict[str, str]:
    """Map each console script of setup.py to its module, all of which offer `main`."""
    for node in ast.walk(ast.parse((checkout / "setup.py").read_text("utf-8"))):
        if isinstance(node, ast.Dict) and "console_scripts" in [
            key.value for key in node.keys if isinstance(key, ast.Constant)
        ]:
            entries = ast.literal_eval(node)["console_scripts"]
            pairs = (entry.split(" = ") for entry in entries)
            return {name: target.removesuffix(":main") for name, target in pairs}
    raise AssertionError("setup.py declares no console_scripts")


def started_module(stub: Path) -> str:
    """Return the module whose `main` a stub starts."""
    for node in ast.walk(ast.parse(stub.read_text("utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "start":
            return str(ast.literal_eval(node.args[0]))
    raise AssertionError(f"{stub} starts nothing")


def test_stubs_equal_console_scripts(checkout: Path) -> None:
    stubs = {stub.name: started_module(stub) for stub in (checkout / "scripts").iterdir()}
    assert stubs == console_scripts(checkout)


def test_stubs_start_by_themselves_and_return_the_exit_code(checkout: Path) -> None:
    for stub in (checkout / "scripts").iterdir():
        text = stub.read_text("utf-8")
        assert os.access(stub, os.X_OK), f"{stub.name} has no execute permission"
        assert text.startswith("#!/usr/bin/env python3\n"), stub.name
        last = (
            f'if __name__ == "__main__":\n    raise SystemExit(start("{started_module(stub)}"))\n'
        )
        assert text.endswith(last), stub.name


def test_every_target_defines_main(checkout: Path) -> None:
    for name, module in console_scripts(checkout).items():
        file = checkout / f"{module.replace('.', '/')}.py"
        functions = {
            node.name
            for node in ast.parse(file.read_text("utf-8")).body
            if isinstance(node, ast.FunctionDef)
        }
        assert "main" in functions, f"{name}: {file} defines no main"
