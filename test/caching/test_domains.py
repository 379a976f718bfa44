"""Domains: names and grants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.caching.domains import Domains, check_name, near
from kv_action_router.errors import DomainError


@pytest.mark.parametrize("name", ["a", "agv-01", "7bot", "hall/ur5e_2", "a.b", "x" * 64])
def test_takes_names(name: str) -> None:
    assert check_name("domain", name) == name


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("", "not empty"),
        (None, "not empty"),
        ("x" * 65, "at most 64"),
        ("a b", "letters"),
        ("a\n", "letters"),
        ("größe", "letters"),
        ("a;DROP", "letters"),
    ],
)
def test_refuses_other_names_with_field_limit_and_value(name: str, limit: str) -> None:
    with pytest.raises(DomainError, match=limit) as caught:
        check_name("owner_domain", name)
    assert "owner_domain" in str(caught.value)


def test_a_grant_is_one_directional_and_not_passed_on() -> None:
    domains = Domains("a")
    for name in ("b", "c"):
        domains.register(name)
    domains.share("a", "b")
    domains.share("b", "c")
    assert domains.readable("b") == ["b", "a"]
    assert domains.readable("c") == ["c", "b"]
    assert domains.readable("a") == ["a"]
    assert domains.listed() == ["a -> b", "b -> c"]
    domains.revoke("a", "b")
    assert domains.readable("b") == ["b"]


def test_refuses_what_makes_no_sense() -> None:
    domains = Domains("robot_a")
    with pytest.raises(DomainError, match="robot_a"):
        domains.share("robot_b", "robot_a")  # near name
    with pytest.raises(DomainError, match="differ"):
        domains.share("robot_a", "robot_a")
    with pytest.raises(DomainError, match="in force: none"):
        domains.revoke("robot_a", "robot_b")
    assert not domains.grants


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.booleans())))
def test_reads_exactly_what_was_granted_last(steps: list[tuple[str, str, bool]]) -> None:
    domains = Domains("a")
    for name in "bcd":
        domains.register(name)
    expected = set()
    for owner, reader, give in steps:
        try:
            domains.share(owner, reader) if give else domains.revoke(owner, reader)
        except DomainError:
            continue
        expected = expected | {(owner, reader)} if give else expected - {(owner, reader)}
    for reader in "abcd":
        for owner in "abcd":
            granted = (owner, reader) in expected or owner == reader
            assert domains.may_read(reader, owner) == granted
            assert (owner in domains.readable(reader)) == granted


def test_near_names_come_first_and_long_values_do_not_hurt() -> None:
    assert near("touch_aproach_v1", ["touch_approach_v1", "retreat_v1"]).startswith(
        "near names: touch"
    )
    assert near("z" * 10_000, ["a"]) == "known: a"
    assert near("a", []) == "none is known"
