"""The response table reads what it says, and refuses what it can't mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.contracts import SLOT
from kv_action_router.errors import ConditionError
from kv_action_router.injection.execution_layer import TEMPERATURE_HYSTERESIS
from kv_action_router.robots.execution_values import load_execution_value
from kv_action_router.tasks.conditions import HeldCondition
from kv_action_router.tasks.predicates import JUMP
from kv_action_router.tasks.rule_file import load_rules, parse_rules
from kv_action_router.tasks.rules import Layer, Response, Rule, Severity, execution_rules
from kv_action_router.tasks.signals import SIGNALS

SHIPPED = Path(__file__).parents[2] / "config" / "conditions.yaml"

ROW: dict[str, Any] = {
    "name": "hot",
    "signal": "drive_temperature",
    "op": ">",
    "limit": 70.0,
    "clear_limit": 65.0,
    "held_ms": 100,
    "layer": "execution",
    "response": "derate",
    "severity": "warning",
    "error_code": 522,
    "message": "{source} is at {value} {unit}, limit {limit}",
}


def test_a_row() -> None:
    (rule,) = parse_rules({"conditions": [ROW]})
    assert rule.name == "hot"
    assert rule.condition.held_ms == 100.0
    assert rule.condition.predicates[0].clear_limit == 65.0
    assert rule.responses == (Response.DERATE,)
    assert rule.severity is Severity.WARNING
    assert not rule.stops
    assert rule.describe("elbow", 71.25) == "elbow is at 71.25 degC, limit 70"
    assert rule.describe("", 71.25).startswith("the robot is at")


def test_what_lasts_and_what_ends() -> None:
    base = {key: ROW[key] for key in ROW if key != "layer"}
    row = {**base, "response": ["slow", "interrupt"], "speed_scale": 0.3, "resumes": True}
    (rule,) = parse_rules({"conditions": [row]})
    assert (rule.layer, rule.speed_scale, rule.resumes, rule.lasts) == (None, 0.3, True, True)
    assert not rule.ends("grip_v1")
    row = {**base, "layer": "task", "response": "complete", "subtask": "*grip*"}
    (rule,) = parse_rules({"conditions": [row]})
    assert rule.layer is Layer.TASK
    assert not rule.lasts
    assert rule.ends("door_grip_v2")
    assert not rule.ends("door_pull_v1")
    assert execution_rules(parse_rules({"conditions": [ROW, {**row, "name": "gripped"}]})) == (
        parse_rules({"conditions": [ROW]})[0],
    )


def test_an_interruption_may_insert_a_sequence() -> None:
    base = {key: ROW[key] for key in ROW if key != "layer"}
    row = {**base, "response": "interrupt", "inserts": "back_off_and_warn"}
    (rule,) = parse_rules({"conditions": [row]})
    assert (rule.inserts, rule.resumes) == ("back_off_and_warn", False)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"response": "none"}, "inserts must be left out without response interrupt"),
        ({"resumes": True}, "resumes must be left out with inserts"),
        ({"inserts": "back_of_and_warn"}, "did you mean 'back_off_and_warn'"),
        ({"inserts": ""}, "inserts must be the name of a task, got ''"),
    ],
)
def test_a_sequence_that_cannot_be_inserted_is_named(
    changes: dict[str, object], message: str
) -> None:
    base = {key: ROW[key] for key in ROW if key != "layer"}
    row = {**base, "response": "interrupt", "inserts": "back_off_and_warn", **changes}
    with pytest.raises(ConditionError, match=message):
        parse_rules({"conditions": [row]})


def test_several_responses_and_predicates() -> None:
    row = {key: ROW[key] for key in ROW if key not in ("signal", "op", "limit", "clear_limit")}
    row["all"] = [
        {"signal": "tracking_error", "op": ">", "limit": 0.1},
        {"signal": "joint_speed", "op": "<", "limit": 0.01},
    ]
    row["layer"], row["response"] = "behavior", ["invalidate", "brake"]
    (rule,) = parse_rules({"conditions": [row]})
    assert rule.condition.signals == ("tracking_error", "joint_speed")
    assert rule.responses == (Response.INVALIDATE, Response.BRAKE)
    assert rule.stops


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"signal": "drive_temprature"}, ("signal", "'drive_temperature'")),
        ({"response": "break"}, ("response", "'break'", "'brake'")),
        ({"response": []}, ("response", "[]")),
        ({"response": ["none", "brake"]}, ("response", "none only alone")),
        ({"response": ["brake", "brake"]}, ("response", "distinct")),
        ({"response": None}, ("response", "None")),
        ({"layer": None}, ("layer", "execution", "derate", "None")),
        ({"layer": "task"}, ("layer", "execution", "'task'")),
        ({"response": "brake"}, ("layer", "left out", "'execution'")),
        ({"response": ["derate", "complete"]}, ("layer", "two rows")),
        ({"signal": "wrench_force"}, ("signal", "injector", "drive_load", "'wrench_force'")),
        ({"speed_scale": 0.5}, ("speed_scale", "slow", "0.5")),
        ({"response": ["derate", "slow"]}, ("speed_scale", "0.05 to 0.95", "None")),
        ({"response": ["derate", "slow"], "speed_scale": 1.0}, ("speed_scale", "1.0")),
        ({"response": ["derate", "slow"], "speed_scale": True}, ("speed_scale", "True")),
        ({"resumes": True}, ("resumes", "interrupt", "True")),
        ({"resumes": "yes"}, ("resumes", "true or false", "'yes'")),
        ({"subtask": "grip*"}, ("subtask", "complete", "'grip*'")),
        ({"subtask": ""}, ("subtask", "''")),
        ({"severity": "bad"}, ("severity", "info, warning, error, fatal", "'bad'")),
        ({"severity": 2}, ("severity", "2")),
        ({"error_code": 422}, ("error_code", "500 to 599", "422")),
        ({"error_code": "522"}, ("error_code", "'522'")),
        ({"error_code": True}, ("error_code", "True")),
        ({"message": ""}, ("message", "''")),
        ({"message": "{node} is lost"}, ("message", "{source}", "{node}")),
        ({"limits": 3}, ("field", "'limits'", "'limit'")),
    ],
)
def test_errors_name_row_field_limit_and_value(
    change: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_rules({"conditions": [{**ROW, **change}]}, where="conditions.yaml")
    for word in ("conditions.yaml: condition 'hot'", *words):
        assert word in str(caught.value)


@pytest.mark.parametrize("data", [None, [], {}, {"conditions": None}, {"conditions": [3]}])
def test_what_is_no_table_is_refused(data: object) -> None:
    with pytest.raises(ConditionError, match="conditions"):
        parse_rules(data)


def test_a_name_twice_is_refused() -> None:
    with pytest.raises(ConditionError, match="unique.*'hot'"):
        parse_rules({"conditions": [ROW, ROW]})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConditionError, match=r"missing\.yaml"):
        load_rules(tmp_path / "missing.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("conditions: [", encoding="utf-8")
    with pytest.raises(ConditionError, match=r"broken\.yaml"):
        load_rules(broken)
    broken.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConditionError, match=r"broken\.yaml"):
        load_rules(broken)


def test_the_shipped_table() -> None:
    rules = {rule.name: rule for rule in load_rules(SHIPPED)}
    assert len(rules) == len(yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))["conditions"])
    assert len({rule.error_code for rule in rules.values()}) == len(rules)
    assert rules["node_lost"].stops
    assert rules["node_lost"].condition.limit == 0.060
    assert rules["unexpected_contact"].condition.limit == 60.0
    assert rules["unexpected_contact"].stops
    assert rules["drive_hot"].responses == (Response.DERATE,)
    assert Response.INVALIDATE in rules["tracking_lost"].responses
    assert rules["tracking_lost"].stops
    for rule in rules.values():
        assert set(rule.condition.signals) <= set(SIGNALS)
        if rule.stops:
            assert rule.severity is Severity.FATAL
        for predicate in rule.condition.predicates:
            assert predicate.operator == JUMP or predicate.clear_limit is not None, rule.name
    late, stale = rules["image_late"], rules["stale_image"]
    assert (late.condition.limit, late.responses) == (0.100, (Response.SLOW,))
    assert (stale.condition.limit, stale.responses) == (0.300, (Response.INTERRUPT,))
    assert stale.resumes
    assert rules["hit_rate_fallen"].condition.limit == 0.15
    grip = rules["gripped"]
    assert (grip.condition.limit, grip.condition.held_ms) == (15.0, 200.0)
    assert grip.layer is Layer.TASK
    assert grip.ends("door_handle_grip_v2")
    assert not grip.ends("touch_approach_v1")
    assert {rule.name for rule in execution_rules(rules.values())} == {"drive_hot", "wheel_jump"}


def test_the_shipped_limit_of_temperature_is_that_of_the_drives_own_values() -> None:
    """Else a drive would be derated by one of them, and told by the other."""
    hot = next(rule for rule in load_rules(SHIPPED) if rule.name == "drive_hot").condition
    value = load_execution_value("ur5e")
    assert (value.slots[:, SLOT["temperature_limit"]] == hot.limit).all()
    assert hot.predicates[0].clear_limit == hot.limit - TEMPERATURE_HYSTERESIS


@pytest.mark.parametrize("rule", load_rules(SHIPPED), ids=lambda rule: rule.name)
@settings(max_examples=10)
@given(data=st.data(), starts_true=st.booleans())
def test_inside_the_hysteresis_a_shipped_row_changes_at_most_once(
    rule: Rule, data: st.DataObject, starts_true: bool
) -> None:
    (predicate,) = rule.condition.predicates
    if predicate.operator == JUMP:
        return
    assert predicate.clear_limit is not None
    low, high = sorted((predicate.limit, predicate.clear_limit))
    rising = predicate.operator in (">", ">=")
    held, step_ns = HeldCondition(rule.condition), int(rule.condition.gap_ns // 2)
    changes, now, before = 0, 0, False
    values = [high + 1.0 if rising else low - 1.0] * 30 if starts_true else []
    inside = st.just(low)
    if low < high:
        inside = st.floats(low, high, exclude_min=True, exclude_max=True)
    values += data.draw(st.lists(inside, max_size=30))
    for value in values:
        now += step_ns
        satisfied = held.update({predicate.signal: value}, now)
        changes += satisfied is not before
        before = satisfied
    assert changes <= 1
