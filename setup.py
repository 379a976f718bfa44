"""Installs the part that needs no ROS 2 with pip; colcon builds the whole by CMakeLists.txt.

For training, or for one piece of the pipeline inside somebody's own driver. The console scripts
are the executables of the ROS 2 package and start where its messages were built.
"""

import re
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).parent
VERSION = re.search(r"<version>([^<]+)</version>", (HERE / "package.xml").read_text("utf-8"))


def requirements(purpose: str) -> list[str]:
    """Lines of requirements/<purpose>.txt without their comments."""
    lines = (HERE / "requirements" / f"{purpose}.txt").read_text("utf-8").splitlines()
    return [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]


setup(
    name="kv_action_router",
    version=VERSION.group(1),
    description="A key-value cache of motion between a slow policy and fast drives",
    license="Apache-2.0",
    license_files=["LICENSE"],
    maintainer="kv_action_router maintainers",
    maintainer_email="maintainers@kv-action-router.dev",
    python_requires=">=3.11",
    packages=find_packages(include=["kv_action_router", "kv_action_router.*"]),
    # Everything that is no Python: models, tables, weights.
    package_data={
        "kv_action_router": ["**/*.xml", "**/*.yaml", "**/*.npz", "**/*.json", "**/*.onnx"]
    },
    # Where a ROS 2 workspace's install tree has them, too.
    data_files=[
        (f"share/kv_action_router/{folder}", sorted(map(str, Path(folder).glob("*.*"))))
        for folder in ("config", "config/tasks", "config/stations")
    ],
    install_requires=requirements("runtime"),
    extras_require={"scale": requirements("scale"), "test": requirements("test")},
    entry_points={
        "console_scripts": [
            "task_key_encoder = kv_action_router.encoding.node:main",
            "cache_manager = kv_action_router.caching.node:main",
            "behavior_synthesizer = kv_action_router.synthesis.node:main",
            "actuator_injector = kv_action_router.injection.node:main",
            "failure_monitor = kv_action_router.monitoring.node:main",
            "simulation = kv_action_router.simulation.node:main",
            "camera = kv_action_router.ros.simulated_camera:main",
            "soft_stages = kv_action_router.ros.composition:main",
            "fault_proxy = kv_action_router.ros.fault_proxy:main",
            "kv_router = kv_action_router.cli.main:main",
            "demo = kv_action_router.cli.demo:main",
        ]
    },
)
