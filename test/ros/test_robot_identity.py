"""A node's configuration gets the robot's identity, the same in all nodes of a namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from kv_action_router.caching.config import CachingConfig
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.errors import ConfigError
from kv_action_router.injection.config import InjectionConfig
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.ros.robot_identity import identified
from kv_action_router.synthesis.config import SynthesisConfig

STAGES = (EncoderConfig, CachingConfig, SynthesisConfig, InjectionConfig)


class Node:
    """What of a node is used: its namespace, and a log."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.told: list[str] = []

    def get_namespace(self) -> str:
        return self._namespace

    def get_logger(self) -> Any:
        return self

    def info(self, text: str) -> None:
        self.told.append(text)

    warning = info


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_all_stages_of_a_namespace_agree_and_two_namespaces_differ() -> None:
    ids = {
        namespace: {identified(Node(namespace), stage()).robot_id for stage in STAGES}
        for namespace in ("/", "/robot1", "/robot2")
    }
    assert all(len(found) == 1 for found in ids.values())
    assert len(set().union(*ids.values())) == 3
    (first,) = ids["/"]
    assert identified(Node("/"), CachingConfig()).own_domain == first
    assert identified(Node("/"), EncoderConfig()).domain_name == first


def test_what_is_configured_stays_and_is_told() -> None:
    node = Node("/")
    assert identified(node, InjectionConfig(robot_id="agv-01")).robot_id == "agv-01"
    assert node.told == ["robot_id is 'agv-01' (configured)"]


@pytest.mark.parametrize("stage", STAGES)
def test_a_name_that_is_none_is_refused_by_every_stage(stage: Any) -> None:
    with pytest.raises(ConfigError, match="robot_id must be empty, or consist of"):
        identified(Node("/"), stage(robot_id="a b"))


def test_a_stage_without_identity_is_left_alone() -> None:
    config = MonitorConfig()
    node = Node("/")
    assert identified(node, config) is config
    assert not node.told
