"""Limits that are 0, missing, inverted or not a number stop the model, naming the joint."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import yaml

from kv_action_router.errors import RobotModelError
from kv_action_router.robots.description import ROBOTS
from kv_action_router.robots.limits import parse_limits
from kv_action_router.robots.model import RobotModel

GOOD = {
    "lower": -1.0,
    "upper": 2,  # an integer, as YAML gives it
    "velocity": 3.0,
    "acceleration": 4.0,
    "jerk": 5.0,
    "effort": 6.0,
}


def limits(**changes):
    entry = {**GOOD, **changes}
    entry = {key: value for key, value in entry.items() if value is not ...}
    return parse_limits(("a", "b"), {"a": dict(GOOD), "b": entry}, "test.yaml")


def test_good_limits_are_kept():
    parsed = limits()
    assert parsed.names == ("a", "b")
    np.testing.assert_array_equal(parsed.upper, [2.0, 2.0])
    assert not parsed.continuous.any()
    with pytest.raises(ValueError, match="read-only"):
        parsed.upper[0] = 9.0


@pytest.mark.parametrize("key", ["velocity", "acceleration", "jerk", "effort"])
@pytest.mark.parametrize("value", [0, 0.0, -1.0, ..., None, float("nan"), float("inf"), "3", True])
def test_bad_limit_names_joint_and_limit(key, value):
    with pytest.raises(RobotModelError, match=rf"b .*{key}"):
        limits(**{key: value})


@pytest.mark.parametrize("key", ["lower", "upper"])
@pytest.mark.parametrize("value", [..., None, float("nan"), float("inf"), "1"])
def test_bad_position_limit_names_joint(key, value):
    with pytest.raises(RobotModelError, match=rf"b {key}"):
        limits(**{key: value})


@pytest.mark.parametrize(("lower", "upper"), [(0, 0), (1.0, -1.0)])
def test_empty_range_names_joint(lower, upper):
    with pytest.raises(RobotModelError, match="b lower must be below upper"):
        limits(lower=lower, upper=upper)


def test_continuous_joint_has_no_position_limits():
    parsed = limits(continuous=True, lower=..., upper=...)
    assert parsed.continuous.tolist() == [False, True]
    assert np.isinf(parsed.upper[1])
    assert np.isinf(parsed.lower[1])
    with pytest.raises(RobotModelError, match="b is continuous"):
        limits(continuous=True)


def test_missing_joint_is_named():
    with pytest.raises(RobotModelError, match="b has no limits"):
        parse_limits(("a", "b"), {"a": dict(GOOD)}, "test.yaml")


def test_unknown_joint_and_limit_are_named():
    with pytest.raises(RobotModelError, match="unknown joint c; joints are a"):
        parse_limits(("a",), {"a": dict(GOOD), "c": dict(GOOD)}, "test.yaml")
    with pytest.raises(RobotModelError, match="b has unknown limit speed"):
        limits(speed=1.0)


@pytest.fixture
def description(tmp_path):
    """Write a changed copy of the UR5e's description and return its path."""
    original = yaml.safe_load((ROBOTS / "ur5e.yaml").read_text())
    (tmp_path / "ur5e.xml").write_text((ROBOTS / "ur5e.xml").read_text())

    def write(change):
        content = copy.deepcopy(original)
        change(content)
        path = tmp_path / "robot.yaml"
        path.write_text(yaml.safe_dump(content))
        return str(path)

    return write


def test_description_by_path_loads(description):
    assert RobotModel.load(description(lambda content: None)).n == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["joints"]["elbow_joint"].update(velocity=0), "elbow_joint velocity"),
        (lambda c: c["joints"].pop("wrist_2_joint"), "wrist_2_joint has no limits"),
        (lambda c: c["joints"]["elbow_joint"].update(lower=4.0), "elbow_joint lower"),
        (lambda c: c["joints"]["elbow_joint"].update(upper=6.0), "elbow_joint upper is wider"),
        (
            lambda c: c["joints"]["wrist_1_joint"].update(effort=150),
            "wrist_1_joint effort is wider",
        ),
        (lambda c: c["home"].pop("elbow_joint"), "home of elbow_joint is missing"),
        (lambda c: c["home"].update(elbow_joint=3.5), "home of elbow_joint must be"),
        (lambda c: c["home"].update(elbow=1.0), "home names unknown joint elbow"),
        (lambda c: c["frames"].update(tip="nose"), "no body or site 'nose'"),
        (lambda c: c["frames"].update(base="forearm_link"), "base frame forearm_link"),
        (lambda c: c.update(mjcf="other.xml"), "other.xml does not exist"),
        (lambda c: c.update(color="red"), "unknown color"),
        (lambda c: c.pop("outline_margin"), "outline_margin is missing"),
        (lambda c: c.update(outline_margin=-0.1), "outline_margin must be at least 0"),
    ],
)
def test_contradictory_description_is_refused(description, change, message):
    with pytest.raises(RobotModelError, match=message):
        RobotModel.load(description(change))


def test_unknown_robot_lists_the_known():
    with pytest.raises(RobotModelError, match="robots are .*ur5e"):
        RobotModel.load("ur6")
