"""The verbs of ``kv_router`` about the cache, against a real cache manager over DDS."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from kv_action_router.cli.main import main
from kv_action_router.contracts import KEY_SIZE, BehaviorValue
from kv_action_router.errors import RouterError
from kv_action_router.ros import topics
from kv_action_router.ros.cache_client import CacheClient, connected
from kv_action_router.ros.conversions import behavior_to_msg

pytestmark = [pytest.mark.dds, pytest.mark.timeout(120)]

PATIENCE_S = 45.0
ARM = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint")
NAMESPACE = "hall/robot1"


KEYS = [
    key / np.linalg.norm(key[:56]) for key in np.random.default_rng(1).normal(size=(2, KEY_SIZE))
]
MOTION = BehaviorValue(
    subtask="touch_approach_v1",
    dimensions=tuple(f"{name}/position" for name in ARM),
    degree=5,
    knots=np.array([0.0] * 6 + [1.0] * 6),
    coefficients=np.zeros((6, len(ARM))),
    phase=0.0,
    decay=np.ones(len(ARM)),
    target=None,
)


@pytest.fixture
def manager(spawn: Callable[..., Any]) -> Any:
    """A cache manager of robot ``r1`` in a namespace."""
    parameters = ("autostart:=true", "robot_id:=r1", "capacity:=100")
    arguments = [part for parameter in parameters for part in ("-p", parameter)]
    return spawn(
        "kv_action_router.caching.node", "--ros-args", "-r", f"__ns:=/{NAMESPACE}", *arguments
    )


def refusal(ask: Callable[[], Any]) -> str:
    """Return why a question is refused."""
    with pytest.raises(RouterError) as told:
        ask()
    return str(told.value)


def insert(client: CacheClient, **changes: Any) -> Any:
    """Insert an entry by the service; return its response."""
    fields = {
        "key": array("d", KEYS[0]),
        "encoder_id": "e1",
        "intent_id": "touch",
        "behavior": behavior_to_msg(MOTION),
    }
    return client.call(topics.INSERT_ENTRY, **{**fields, **changes})


def test_every_answer(manager: Any, wait_until: Callable[..., Any]) -> None:
    with connected(NAMESPACE, PATIENCE_S) as client:
        assert client.entries("", "", "", 0, 0) == {"entries": [], "remaining": 0}
        done = insert(client)
        assert (done.entry_id, done.entry_version, done.evicted) == (1, 1, 0)
        assert insert(client).entry_version == 2  # a near-duplicate
        assert insert(client, key=array("d", KEYS[1]), intent_id="press").entry_id == 2
        insertions_are_refused(client)
        entries_are_listed(client)
        domains_are_shared(client)
        counters = client.statistics()
        assert {row["layer"] for row in counters["layers"]} == {"task", "behavior", "execution"}
        assert counters["match_time_p99_us"] is None  # no key has come
        entries_are_thrown_away(client, wait_until)
    assert manager.running


def entries_are_listed(client: CacheClient) -> None:
    """Entries, pages of them, and single ones."""
    (first, second) = client.entries("", "", "", 0, 0)["entries"]
    assert (first["entry_id"], first["intent_id"], first["domain"]) == (1, "touch", "r1")
    assert second["entry_id"] == 2
    assert client.entries("", "press", "", 0, 0)["entries"] == [second]
    assert client.entries("", "", "", 0, 1) == {"entries": [first], "remaining": 1}
    assert client.entries("", "", "", 1, 1) == {"entries": [second], "remaining": 0}
    stored = client.entry(1, "")
    assert stored["info"] == first
    assert stored["key"] == pytest.approx(KEYS[0].tolist(), abs=1e-6)
    assert stored["behavior"]["knots"] == MOTION.knots.tolist()
    for ask, message in (
        (lambda: client.entries("", "", "", 0, 1001), "limit must be 0 (= 100) to 1000, got 1001"),
        (lambda: client.entries("r2", "", "", 0, 0), "domain must be a known domain, got 'r2'"),
        (lambda: client.entry(9, ""), "got 9 (near ids: 1, 2)"),
        (lambda: client.entry(2**64 - 1, ""), "(near ids: 1, 2)"),
    ):
        assert message in refusal(ask)


def domains_are_shared(client: CacheClient) -> None:
    """Grants are given, seen in the list, and taken back."""
    assert "must differ" in refusal(lambda: client.set_isolation("r1", "r1", False))
    assert client.set_isolation("r1", "7bot", False)["grants"] == ["r1 -> 7bot"]
    (bot, own) = client.domains()["domains"]
    assert (bot["name"], own["readers"], own["entries"]) == ("7bot", ["7bot"], 2)
    seen = client.entries("7bot", "", "", 0, 0)["entries"]
    assert [entry["domain"] for entry in seen] == ["r1", "r1"]
    assert client.set_isolation("r1", "7bot", True)["grants"] == []
    assert client.entries("7bot", "", "", 0, 0)["entries"] == []
    assert "it may read none" in refusal(lambda: client.entry(1, "7bot"))


def entries_are_thrown_away(client: CacheClient, wait_until: Callable[..., Any]) -> None:
    """With a reason, and by a scope that there is."""
    assert "reason must be" in refusal(lambda: client.invalidate("all", " "))
    assert "near names: touch" in refusal(lambda: client.invalidate("task", "x", intent_id="toch"))
    assert "layer must be one of" in refusal(lambda: client.invalidate("layer", "x", layer="tsk"))
    assert client.invalidate("entry", "Conditions have changed", entry_id=1)["count"] == 1
    assert client.invalidate("all", "moved") == {"message": "1 thrown away: moved", "count": 1}
    assert client.invalidate("domain", "again", domain="r1")["count"] == 0

    def counted() -> bool:  # people's reasons, whatever they begin with
        layers = client.statistics()["layers"]
        causes = [(row["invalidations_request"], row["invalidations_condition"]) for row in layers]
        return (2, 0) in causes

    wait_until(counted, PATIENCE_S, "the count by cause")


def insertions_are_refused(client: CacheClient) -> None:
    """Insertions that are refused with field, limit and value."""
    for changes, message in (
        ({"key": array("d", [0.5] * 63)}, "key must be 64 values, got 63"),
        ({"key": array("d", [float("nan")] * 64)}, "key must be finite"),
        ({"key": array("d", [1e300] * 64)}, "key must be finite"),
        ({"key": array("d", [0.0] * 64)}, "must not be zero"),
        ({"key": array("d", [0.5] * 1_000_000)}, "got 1000000"),
        ({"domain": "r11"}, "domain must be a known domain, got 'r11' (near names: r1)"),
        ({"domain": "a b"}, "domain must consist of letters"),
        ({"encoder_id": ""}, "encoder_id must be a name while no key has come"),
        ({"intent_id": ""}, "intent_id must have 1 to 256 characters, got 0"),
        ({"behavior": topics.INSERT_ENTRY.type.Request().behavior}, "behavior must be given"),
    ):
        assert message in refusal(lambda changes=changes: insert(client, **changes))


def test_nobody_answers(
    manager: Any, capsys: pytest.CaptureFixture[str], wait_until: Callable[..., Any]
) -> None:
    there = ["--namespace", NAMESPACE, "--timeout"]
    assert main(["statistics", *there, str(PATIENCE_S)]) == 0
    assert "robot r1: 0 keys" in capsys.readouterr().out

    def told(*words: str) -> str:
        assert main(words) == 1
        return capsys.readouterr().err

    def hint(part: str, *words: str) -> str:
        found = wait_until(lambda: part in (e := told(*words)) and e, PATIENCE_S, part)
        assert len(found.splitlines()) == 1
        return found

    nowhere = ["--namespace", "robot2", "--timeout", "0.5"]
    error = hint(
        f"cache managers are seen in --namespace /{NAMESPACE}", "domains", "list", *nowhere
    )
    assert "waited 0.5 s for service cache_manager/list_domains in namespace '/robot2'" in error
    # The encoder is missing: no key comes.
    assert "a message on cache_match" in hint("a cache manager is there", "explain", *there, "0.5")
    error = told("domains", "list", "--namespace", "agv-01", "--timeout", "0.5")
    assert "namespace must be one, got 'agv-01'" in error


def test_nobody_is_seen(ros_domain_id: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["statistics", "--timeout", "0.2"]) == 1
    error = capsys.readouterr().err
    assert f"no cache manager is seen in ROS domain {ros_domain_id}" in error


def test_a_high_domain_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "102")
    assert main(["statistics", "--timeout", "0.1"]) == 1
    assert "ROS_DOMAIN_ID is 102: above 101" in capfd.readouterr().err
