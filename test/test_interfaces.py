"""docs/interfaces.md says what the code says, nothing less and nothing more."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kv_action_router import contracts, errors
from kv_action_router.tasks.rule_file import RULE_FIELDS
from kv_action_router.tasks.rules import Response
from kv_action_router.tasks.signals import SIGNALS

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "interfaces.md").read_text(encoding="utf-8")
NODES = (
    "task_key_encoder",
    "cache_manager",
    "behavior_synthesizer",
    "actuator_injector",
    "failure_monitor",
)
DEFINITIONS = sorted(
    path for kind in ("msg", "srv", "action") for path in (ROOT / kind).glob(f"*.{kind}")
)


def table(first_column: str, document: str = DOCUMENT) -> list[list[str]]:
    """Return the rows of the table whose head begins with this word."""
    rows: list[list[str]] = []
    inside = False
    for line in document.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            inside = False
        elif cells[0] == first_column:
            inside = True
        elif inside and not set(line) <= set("|-"):
            rows.append(cells)
    assert rows, f"no table that begins with {first_column!r}"
    return rows


def by_first(first_column: str) -> dict[str, list[str]]:
    rows = table(first_column)
    assert len({row[0] for row in rows}) == len(rows), "a row twice"
    return {row[0]: row[1:] for row in rows}


def type_name(kind: type) -> str:
    package, group = kind.__module__.split(".")[:2]
    return f"{package}/{group}/{kind.__name__}"


# --- ROS ---------------------------------------------------------------------------------------


@pytest.fixture
def declared() -> Any:
    pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")
    from kv_action_router.ros import topics

    return topics


def test_topics(declared: Any) -> None:
    rows = by_first("topic")
    code = {
        topic.name: [type_name(topic.type), topic.profile.__name__] for topic in declared.topics()
    }
    assert {name: row[:2] for name, row in rows.items()} == code
    assert declared.NODES == NODES
    ends = {*NODES, "driver", "anybody", "all nodes", "fault_proxy"}
    for name, row in rows.items():
        for cell in row[2:4]:
            assert set(cell.split(", ")) <= ends, name
        assert row[4], f"{name} has no purpose"


def test_names_are_relative(declared: Any) -> None:
    names = [item.name for item in (*declared.topics(), *declared.services())]
    assert [name for name in names if name.startswith(("/", "~"))] == ["/diagnostics"]


def test_profiles(declared: Any) -> None:
    from kv_action_router.ros import qos

    def milliseconds(duration: Any) -> str:
        # Infinite is 0 or a very large number, by release.
        value = duration.nanoseconds
        return "" if value == 0 or value > 1e15 else f"{value / 1e6:g}"

    code = {}
    for name, function in inspect.getmembers(qos, inspect.isfunction):
        if name.startswith("_"):
            continue
        assert inspect.getdoc(function), f"{name} gives no reason"
        profile = function()
        assert profile.history.name == "KEEP_LAST"
        lease = milliseconds(profile.liveliness_lease_duration)
        if lease:
            assert profile.liveliness.name == "MANUAL_BY_TOPIC", name
        code[name] = [
            str(profile.depth),
            profile.reliability.name.lower().replace("_", " "),
            profile.durability.name.lower().replace("_", " "),
            milliseconds(profile.deadline),
            lease,
        ]
    rows = by_first("profile")
    assert {name: row[:5] for name, row in rows.items()} == code
    assert all(row[5] for row in rows.values())
    used = {topic.profile.__name__ for topic in declared.topics()}
    readers = {name for name, row in rows.items() if row[5].startswith("reader only")}
    assert used == set(rows) - readers


def test_services_and_actions(declared: Any) -> None:
    rows = by_first("name")
    code = {item.name: [type_name(item.type), item.node] for item in declared.services()}
    assert {name: row[:2] for name, row in rows.items()} == code
    for name, row in rows.items():
        assert set(row[2].split(", ")) <= {*NODES, "anybody"}, name
        assert row[3], f"{name} has no purpose"


@pytest.mark.dds
@pytest.mark.timeout(150)
def test_the_running_system_has_these_ends(
    declared: Any, ros: Any, spawn: Callable[..., Any], wait_until: Callable[..., Any]
) -> None:
    from rclpy.node import Node

    spawn("kv_action_router.ros.bringup", "ur5e")
    probe = Node("probe", context=ros)
    rows = by_first("topic")

    def ends(infos: list[Any]) -> set[str]:
        names = set()
        for info in infos:
            # Polled readers live on a helper of their node.
            name = re.sub(r"^_(.*)_streams$", r"\1", info.node_name)
            names.add("driver" if name in ("simulation", "camera") else name)
        return names

    def differences() -> list[str]:
        found = []
        for name, row in rows.items():
            resolved = probe.resolve_topic_name(name)
            for side, cell, infos in (
                ("publishers", row[2], probe.get_publishers_info_by_topic(resolved)),
                ("subscribers", row[3], probe.get_subscriptions_info_by_topic(resolved)),
            ):
                told = set(cell.split(", ")) - {"anybody"}
                told = set(NODES) if told == {"all nodes"} else told
                seen = ends(infos)
                missing, unknown = told - seen, seen - told
                if name == "odom":
                    missing -= {"driver"}  # an arm has none
                if name == "scene":
                    missing -= {"task_key_encoder"}  # it listens where it is told to
                missing -= {"fault_proxy"}  # only tests start one
                if name.startswith(("velocity_", "position_")):
                    missing -= {"actuator_injector"}  # one command interface at a time
                if missing or unknown:
                    found.append(f"{name} {side}: missing {missing}, not in the table {unknown}")
        return found

    try:
        wait_until(lambda: not differences(), 90.0, "the graph of the table", interval=0.5)
    except pytest.fail.Exception:
        pytest.fail("\n".join(differences()) or "the graph came right too late")
    finally:
        probe.destroy_node()


# --- layouts and codes --------------------------------------------------------------------------


def test_execution_slots() -> None:
    rows = table("slot")
    assert [row[1] for row in rows] == list(contracts.SLOT_NAMES)
    assert [int(row[0]) for row in rows] == list(range(contracts.EXECUTION_SLOTS))
    source = inspect.getsource(contracts)
    for _, name, unit, meaning in rows:
        assert meaning, name
        comment = re.search(rf'"{name}",\s*#(.*)', source)
        assert comment, name
        units = re.search(r"\[(.*?)\]", comment.group(1))
        assert unit == (units.group(1) if units else ""), name


def test_key_slices() -> None:
    rows = by_first("slice")
    code = {
        name: [f"{part.start}:{part.stop}", f"{contracts.SLICE_WEIGHTS[name]:g}"]
        for name, part in contracts.SLICES.items()
    }
    robot = contracts.ROBOT_SLICE
    code["robot"] = [f"{robot.start}:{robot.stop}", "compared"]
    assert {name: row[:2] for name, row in rows.items()} == code
    last = [int(row[0].split(":")[1]) for row in rows.values()]
    assert max(last) == contracts.KEY_SIZE


def test_error_codes() -> None:
    code: dict[str, list[str]] = {}
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if not issubclass(kind, errors.RouterError):
            continue
        assert str(kind.error_code) not in code, f"{name} shares its code"
        code[str(kind.error_code)] = [name, (inspect.getdoc(kind) or "").splitlines()[0][:-1]]
        block = kind.error_code // 100
        base = {
            1: errors.EncodingError,
            2: errors.CachingError,
            3: errors.SynthesisError,
            4: errors.InjectionError,
            5: errors.MonitoringError,
        }.get(block)
        assert block <= 5
        assert base is None or issubclass(kind, base), f"{name} is in another stage's block"
    rows = {row[0]: row[1:] for row in table("code") if len(row) == 3}
    assert rows == code


def test_codes_of_conditions() -> None:
    code = {}
    table_file = ROOT / "config" / "conditions.yaml"
    for row in yaml.safe_load(table_file.read_text(encoding="utf-8"))["conditions"]:
        response = row["response"]
        response = ", ".join(response) if isinstance(response, list) else response
        signal = row.get("signal") or row["all"][0]["signal"]
        code[str(row["error_code"])] = [row["name"], signal, response]
    assert {row[0]: row[1:] for row in table("code") if len(row) == 4} == code
    fixed = {str(k.error_code) for _, k in inspect.getmembers(errors, inspect.isclass)
             if issubclass(k, errors.RouterError)}  # fmt: skip
    assert not fixed & set(code), "a condition shares the code of an error"


def test_signals() -> None:
    code = {
        name: [info.unit, info.source, info.each, f"{info.stale_after_ms:g} ms", info.description]
        for name, info in SIGNALS.items()
    }
    document = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
    rows = table("signal", document)
    assert len({row[0] for row in rows}) == len(rows), "a row twice"
    assert {row[0]: row[1:] for row in rows} == code


def test_responses_and_fields_of_conditions() -> None:
    document = (ROOT / "docs" / "conditions.md").read_text(encoding="utf-8")
    assert {row[0] for row in table("asked for", document)} == {item.value for item in Response}
    told = {name for row in table("field", document) for name in row[0].split("`, `")}
    assert told == set(RULE_FIELDS)
    written = {name for row in table("detector", document) for name in row[1].split("`, `")}
    assert written == set(SIGNALS), "a signal without a detector, or the other way round"


# --- definitions --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.name)
def test_every_field_has_a_meaning(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# "), "no first line that says what it is"
    bare = []
    for line in lines:
        field, _, comment = line.partition("#")
        if field.strip() not in ("", "---") and len(comment.strip()) < 2:
            bare.append(field.strip())
    assert not bare, f"without a comment: {bare}"


def test_there_are_definitions() -> None:
    names = {path.stem for path in DEFINITIONS}
    wanted = {
        "TaskKey", "CacheMatch", "TrajectoryChunk", "AuxiliaryOutput", "ExecutionValue",
        "ExecutionFeedback", "EntryUpdate", "TaskState", "StageCondition", "ObstacleSpheres",
        "DriveState", "Stop", "Heartbeat", "CacheStatistics", "FailureEvent", "QueryCache",
        "InvalidateCache", "SetDomainIsolation", "InterruptExecution", "ResumeExecution",
        "ExecuteTask",
    }  # fmt: skip
    assert wanted <= names
