"""``ROS_DOMAIN_ID`` is looked at before anything starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kv_action_router.errors import ConfigError
from kv_action_router.ros.domain_id import check_domain_id


@pytest.mark.parametrize("value", ["0", "1", "101"])
def test_good_ones_say_nothing(value: str) -> None:
    assert check_domain_id({"ROS_DOMAIN_ID": value}) == ""


def test_unset_is_zero() -> None:
    assert check_domain_id({}) == ""


@pytest.mark.parametrize("value", ["102", "232"])
def test_high_ones_are_warned_of(value: str) -> None:
    warning = check_domain_id({"ROS_DOMAIN_ID": value})
    assert value in warning
    assert "above 101" in warning


@pytest.mark.parametrize(
    "value", ["", " ", "abc", "233", "9999", "-1", "1.5", "0x10", "٣", "1 ", "9" * 5000]
)
def test_others_are_refused_with_limit_and_value(value: str) -> None:
    with pytest.raises(ConfigError, match="ROS_DOMAIN_ID must be an integer from 0 to 232") as told:
        check_domain_id({"ROS_DOMAIN_ID": value})
    assert repr(value)[:20] in str(told.value)
    assert len(str(told.value)) < 300


@pytest.mark.dds
@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("kv_action_router.caching.node", ()),
        ("kv_action_router.ros.bringup", ("ur5e",)),
        ("kv_action_router.cli.main", ("domains", "list")),
    ],
)
def test_nothing_starts_in_a_domain_that_is_none(
    spawn: Callable[..., Any], program: str, arguments: tuple[str, ...]
) -> None:
    pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")
    process = spawn(program, *arguments, ROS_DOMAIN_ID="abc")
    assert process.wait(30.0) == 2
    output = process.output()
    assert "ROS_DOMAIN_ID must be an integer from 0 to 232" in output
    assert "Traceback" not in output
    assert len(output.splitlines()) == 1
