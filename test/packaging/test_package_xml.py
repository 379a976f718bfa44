"""package.xml is complete for rosdep; a malformed one makes colcon fall back to plain cmake."""

from __future__ import annotations

import ast
import functools
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

# Modules whose name is not the key that rosdep knows them by.
ROSDEP_KEYS = {
    "coal": "pinocchio",
    "cv2": "python3-opencv",
    "hypothesis": "python3-hypothesis",
    "matplotlib": "python3-matplotlib",
    "numpy": "python3-numpy",
    "pinocchio": "pinocchio",
    "psutil": "python3-psutil",
    "pytest": "python3-pytest",
    "rich": "python3-rich",
    "scipy": "python3-scipy",
    "yaml": "python3-yaml",
}
# rosdep's index has no key for these: pip brings them, from requirements/runtime.txt.
ONLY_PIP = {
    "mujoco": "mujoco",
    "onnxruntime": "onnxruntime",
    "ruckig": "ruckig",
    "threadpoolctl": "threadpoolctl",
}
OPTIONAL = {
    "cv_bridge",  # offered where a ROS installation has it, replaced by our own converter where not
    "torch",  # trains the perception network; requirements/learning.txt
    "usearch",  # for caches of more than 100,000 entries; requirements/scale.txt
}
# Needed without being imported from Python.
INDIRECT = {
    "ament_cmake",  # build type
    "python3-pytest-timeout",  # plugin
    "rosidl_default_generators",
    "rosidl_default_runtime",
}


@pytest.fixture(scope="module")
def root(checkout: Path) -> ElementTree.Element:
    """The document."""
    return ElementTree.parse(checkout / "package.xml").getroot()


@pytest.fixture(scope="module")
def declared(root: ElementTree.Element) -> set[str]:
    """Every rosdep key and package that the document names."""
    return {e.text or "" for e in root if e.tag.endswith("depend")}


def third_party(files: list[Path]) -> set[str]:
    """Top-level names of what the files import beside this package and the standard library.

    Message types that are named by a string, `"package/msg/Type"`, count too.
    """
    found: set[str] = set()
    for file in files:
        text = file.read_text("utf-8")
        found |= set(re.findall(r"[\"']([a-z0-9_]+)/(?:msg|srv|action)/[A-Z]", text))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").split(".")[0])
    return found - sys.stdlib_module_names - {"kv_action_router", "package"}


@functools.cache
def runtime_imports(checkout: Path) -> set[str]:
    """What the installed package imports."""
    return third_party(
        [*(checkout / "kv_action_router").rglob("*.py"), *(checkout / "launch").glob("*.py")]
    )


def test_required_fields(root: ElementTree.Element) -> None:
    assert root.attrib["format"] == "3"
    assert root.findtext("name") == "kv_action_router"
    assert root.findtext("license") == "Apache-2.0"
    assert re.fullmatch(r"\d+\.\d+\.\d+", root.findtext("version") or "")
    assert len(" ".join((root.findtext("description") or "").split())) > 200
    maintainer = root.find("maintainer")
    assert maintainer is not None
    assert maintainer.attrib["email"].startswith("maintainers@"), "a role, no person"
    assert root.findtext("member_of_group") == "rosidl_interface_packages"
    assert root.findtext("export/build_type") == "ament_cmake"


def test_passes_the_parser_that_colcon_uses(checkout: Path) -> None:
    package = pytest.importorskip("catkin_pkg.package", reason="catkin_pkg comes with colcon")
    warnings: list[str] = []
    parsed = package.parse_package(checkout / "package.xml", warnings=warnings)
    parsed.validate(warnings=warnings)
    assert warnings == []
    assert (checkout / parsed.licenses[0].file).is_file()


def test_every_import_is_declared(checkout: Path, declared: set[str]) -> None:
    modules = runtime_imports(checkout) - OPTIONAL - set(ONLY_PIP)
    missing = {module for module in modules if ROSDEP_KEYS.get(module, module) not in declared}
    assert not missing, f"package.xml does not declare {sorted(missing)}"


def test_every_declaration_is_used(checkout: Path, declared: set[str]) -> None:
    modules = runtime_imports(checkout) | third_party(list((checkout / "test").rglob("*.py")))
    used = {ROSDEP_KEYS.get(module, module) for module in modules} | INDIRECT
    for file in interface_files(checkout):
        used |= packages_in(file)
    assert not declared - used, f"package.xml declares {sorted(declared - used)} for nothing"


def test_what_rosdep_lacks_is_pinned_for_pip(checkout: Path) -> None:
    runtime = (checkout / "requirements/runtime.txt").read_text("utf-8")
    for module in runtime_imports(checkout) & set(ONLY_PIP):
        assert re.search(rf"^{ONLY_PIP[module]}==", runtime, re.MULTILINE), module


def interface_files(checkout: Path) -> list[Path]:
    """All message, service and action files."""
    return [f for kind in ("msg", "srv", "action") for f in (checkout / kind).iterdir()]


def packages_in(file: Path) -> set[str]:
    """Packages whose messages an interface file contains."""
    return set(re.findall(r"^([a-z0-9_]+)/[A-Z]", file.read_text("utf-8"), re.MULTILINE))


def test_packages_of_interface_files(checkout: Path, declared: set[str]) -> None:
    used = set().union(*map(packages_in, interface_files(checkout)))
    cmake = (checkout / "CMakeLists.txt").read_text("utf-8")
    listed = re.search(r"set\(interface_dependencies ([^)]*)\)", cmake)
    assert listed is not None
    assert used <= set(listed.group(1).split()), "CMakeLists.txt does not find them"
    assert set(listed.group(1).split()) <= declared


def test_one_version(checkout: Path, root: ElementTree.Element) -> None:
    """setup.py takes it from package.xml."""
    assert 'package.xml").read_text' in (checkout / "setup.py").read_text("utf-8")
    changelog = checkout / "CHANGELOG.md"
    if changelog.exists():
        assert root.findtext("version") in changelog.read_text("utf-8")
