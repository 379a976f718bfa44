"""Two robots of one identity find out; one that restarts does not quarrel with itself."""

from __future__ import annotations

from kv_action_router.claims import CONFIRM_NS, FORGET_NS, Claims, new_instance


def test_another_instance_of_the_same_identity_is_a_conflict_for_both() -> None:
    first, second = Claims("agv-01", "a"), Claims("agv-01", "b")
    for now in (0, CONFIRM_NS):
        first.hear("agv-01", "b", "/two/cache_manager", now)
        second.hear("agv-01", "a", "/one/cache_manager", now)
    told = first.conflict(CONFIRM_NS)
    assert told == "robot_id 'agv-01' is claimed by /two/cache_manager too"
    assert "/one/cache_manager" in second.conflict(CONFIRM_NS)


def test_others_and_oneself_are_none() -> None:
    claims = Claims("agv-01", "a")
    for now in (0, CONFIRM_NS):
        claims.hear("agv-02", "b", "/two/cache_manager", now)
        claims.hear("agv-01", "a", "/one/cache_manager", now)
    assert not claims.conflict(CONFIRM_NS)


def test_the_last_words_of_the_run_before_are_no_conflict() -> None:
    claims = Claims("agv-01", "new")
    for now in (0, CONFIRM_NS - 1):
        claims.hear("agv-01", "old", "/one/cache_manager", now)
    assert not claims.conflict(CONFIRM_NS)


def test_a_conflict_ends_when_the_other_is_gone() -> None:
    claims = Claims("agv-01", "a")
    for now in (0, CONFIRM_NS):
        claims.hear("agv-01", "b", "/two/cache_manager", now)
    assert claims.conflict(CONFIRM_NS + FORGET_NS)
    assert not claims.conflict(CONFIRM_NS + FORGET_NS + 1)
    claims.hear("agv-01", "b", "/two/cache_manager", CONFIRM_NS + FORGET_NS + 2)
    assert not claims.conflict(CONFIRM_NS + FORGET_NS + 2)  # it has to be confirmed again


def test_no_two_runs_have_one_instance() -> None:
    assert len({new_instance() for _ in range(100)}) == 100
