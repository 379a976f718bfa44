"""The match: which entry answers, and the reason when none does."""

from __future__ import annotations

import dataclasses
import math
from functools import partial

import numpy as np
import pytest

from kv_action_router.caching.key_index import prepare_key
from kv_action_router.caching.match import Answer
from kv_action_router.contracts import ROBOT_SLICE, SUMMED_SLICE, MissReason, UpdateOperation
from kv_action_router.errors import KeyInvalidError


def insert(manager, build, vector=None, **decision) -> int:
    behavior = decision.pop("behavior", None)
    return manager.apply(build.update(vector=vector, behavior=behavior, **decision)).entry_id


def ask(manager, key, **names: str) -> Answer:
    return manager.query(key, intent_id=names.pop("intent_id", "touch"), **names)


def test_the_same_key_is_a_hit_and_says_why(build) -> None:
    manager = build.manager()
    entry = insert(manager, build)
    answer = ask(manager, build.vector())
    assert answer.hit
    assert answer.miss_reason == MissReason.NONE
    assert answer.entry_id == entry
    assert answer.similarity == pytest.approx(1.0, abs=1e-6)
    assert answer.target_similarity == pytest.approx(1.0, abs=1e-6)
    assert answer.source_domain == "r1"
    assert "1.000 is above 0.850" in answer.reason
    assert math.isnan(answer.margin)


@pytest.mark.parametrize(
    "change",
    [
        lambda key: key.astype(np.float64),
        lambda key: key.astype(np.float16),
        lambda key: np.repeat(key, 2)[::2],
        lambda key: key + np.float32(1e-7),
        lambda key: np.where(key == 0.0, -0.0, key),
        lambda key: np.concatenate([key[SUMMED_SLICE] * 2.0, key[ROBOT_SLICE]]),
        list,
    ],
    ids=["float64", "float16", "strided", "1e-7", "-0.0", "scaled", "list"],
)
def test_the_same_key_in_another_dress_is_the_same_hit(build, change) -> None:
    manager = build.manager()
    vector = build.vector()
    vector[[3, 20, 60]] = 0.0  # -0.0 is another dress of these alone
    entry = insert(manager, build, vector)
    answer = ask(manager, change(vector))
    assert answer.hit
    assert answer.entry_id == entry
    assert answer.similarity == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(("cosine", "hit"), [(0.42, True), (0.38, False)])
def test_threshold_of_the_weighted_cosine(build, cosine: float, hit: bool) -> None:
    """A slice of weight 1/4 turned to cosine c gives 3/4 + c/4: 0.855 and 0.845."""
    manager = build.manager()
    insert(manager, build)
    answer = ask(manager, build.turned(build.vector(), "scene", cosine))
    assert answer.hit == hit
    assert answer.similarity == pytest.approx(0.75 + cosine / 4, abs=1e-5)
    assert answer.worst_slice == "scene"
    assert answer.worst_slice_similarity == pytest.approx(cosine, abs=1e-5)
    if not hit:
        assert answer.miss_reason == MissReason.SIMILARITY
        assert "0.845 is not above 0.850" in answer.reason


@pytest.mark.parametrize(
    ("scene", "limit"), [("default", 0.85), ("corridor", 0.85), ("warehouse", 0.72), ("", 0.85)]
)
def test_each_scene_has_its_threshold(build, scene: str, limit: float) -> None:
    manager = build.manager()
    insert(manager, build)
    for offset, hit in ((0.01, True), (-0.01, False)):
        body = max(-1.0, (limit + offset - 0.75) * 4)
        answer = ask(manager, build.turned(build.vector(), "body", body), scene=scene)
        assert answer.threshold == limit
        assert answer.hit == hit


def test_a_question_without_a_scene_is_about_that_of_the_newest_key(build) -> None:
    manager = build.manager(scene="corridor", scene_thresholds=(0.9, 0.72))
    insert(manager, build)
    assert ask(manager, build.vector()).threshold == 0.9
    manager.on_key(build.key(scene="warehouse"))
    assert ask(manager, build.vector()).threshold == 0.72
    assert ask(manager, build.vector(), scene="corridor").threshold == 0.9


@pytest.mark.parametrize(("cosine", "hit"), [(0.76, True), (0.74, False)])
def test_the_target_slice_has_its_own_minimum(build, cosine: float, hit: bool) -> None:
    manager = build.manager()
    insert(manager, build)
    answer = ask(manager, build.turned(build.vector(), "target", cosine))
    assert answer.similarity > answer.threshold
    assert answer.hit == hit
    assert answer.target_minimum == 0.75
    if not hit:
        assert answer.miss_reason == MissReason.TARGET
        assert "0.740 is below 0.750" in answer.reason


def test_a_motion_without_a_target_needs_no_target_minimum(build) -> None:
    manager = build.manager()
    insert(manager, build, behavior=build.behavior(acts_on_target=False))
    assert ask(manager, build.turned(build.vector(), "target", 0.72)).hit


def test_a_key_without_target_is_compared_over_what_it_holds(build) -> None:
    manager = build.manager()
    blind = build.vector()
    blind[:16] = 0.0
    insert(manager, build, blind, behavior=build.behavior(acts_on_target=False))
    answer = ask(manager, blind)
    assert answer.hit
    assert math.isnan(answer.target_similarity)
    assert answer.worst_slice in ("scene", "body")
    seeing = ask(manager, build.vector())
    assert seeing.similarity == pytest.approx(math.sqrt(0.5), abs=1e-5)


def test_a_key_without_target_says_so_where_one_is_needed(build) -> None:
    manager = build.manager()
    insert(manager, build)
    blind = build.vector()
    blind[:16] = 0.0
    answer = ask(manager, blind)
    assert not answer.hit
    assert answer.miss_reason == MissReason.TARGET
    assert answer.reason.endswith("the motion acts on a target, the key holds none")


def test_margin_is_to_the_best_of_another_behavior(build) -> None:
    manager = build.manager()
    first = insert(manager, build)
    insert(manager, build, build.turned(build.vector(), "scene", 0.6))
    insert(manager, build, build.turned(build.vector(), "body", 0.2))
    answer = ask(manager, build.vector())
    assert answer.entry_id == first
    assert answer.margin == pytest.approx(0.1, abs=1e-5)


def test_the_next_candidate_is_tried_when_the_best_is_refused(build) -> None:
    manager = build.manager()
    best = insert(manager, build)
    second = insert(manager, build, build.turned(build.vector(), "scene", 0.8))
    for _ in range(2):
        manager.apply(build.update(UpdateOperation.FAILURE, entry=best, version=1))
    answer = ask(manager, build.vector())
    assert answer.hit
    assert answer.entry_id == second
    assert answer.margin == pytest.approx(-0.05, abs=1e-5)
    only_one = build.manager(candidates=1)
    insert(only_one, build)
    insert(only_one, build, build.turned(build.vector(), "scene", 0.8))
    for _ in range(2):
        only_one.apply(build.update(UpdateOperation.FAILURE, entry=1, version=1))
    answer = ask(only_one, build.vector())
    assert answer.miss_reason == MissReason.CONFIDENCE
    assert "2 failures in a row, limit 2" in answer.reason


class TestEmpty:
    """No candidate: the reason names what left none, with near names."""

    def test_nothing_at_all(self, build) -> None:
        answer = ask(build.manager(), build.vector())
        assert answer.miss_reason == MissReason.EMPTY
        assert "no entry in domain 'r1'" in answer.reason
        assert math.isnan(answer.similarity)
        assert answer.entry_id == 0

    def test_intent(self, build) -> None:
        manager = build.manager()
        insert(manager, build)
        answer = ask(manager, build.vector(), intent_id="tuoch")
        assert answer.miss_reason == MissReason.EMPTY
        assert "intent_id 'tuoch' (near names: touch)" in answer.reason

    def test_an_old_version_of_a_subtask_never_matches(self, build) -> None:
        manager = build.manager()
        insert(manager, build)
        answer = ask(manager, build.vector(), subtask="touch_approach_v2")
        assert answer.miss_reason == MissReason.EMPTY
        assert "near names: touch_approach_v1" in answer.reason

    def test_another_encoder(self, build) -> None:
        manager = build.manager()
        insert(manager, build)
        match = build.decide(manager, key=build.key(encoder_id="e2"))
        assert match.miss_reason == MissReason.EMPTY
        assert "encoder_id 'e2'" in match.reason

    def test_another_robot(self, build) -> None:
        manager = build.manager()
        insert(manager, build)
        answer = ask(manager, build.vector(robot=99))
        assert answer.miss_reason == MissReason.EMPTY
        assert "robot slice differs" in answer.reason


@pytest.mark.parametrize(("offset", "hit"), [(0.0005, True), (0.002, False)])
def test_an_identity_outside_its_tolerance_is_a_miss_that_tells_the_distance(
    build, offset: float, hit: bool
) -> None:
    manager = build.manager()
    insert(manager, build)
    key = build.vector()
    key[60] += offset
    answer = ask(manager, key)
    assert answer.hit == hit
    if not hit:
        assert "differs by 0.002, limit 0.001" in answer.reason


@pytest.mark.parametrize("noise", [0.01, 0.3, 1.0])
def test_the_distance_of_a_key_is_told_whether_it_hits_or_misses(build, noise: float) -> None:
    manager = build.manager(target_minimum=-1.0)
    insert(manager, build)
    key = build.vector()
    key[SUMMED_SLICE] += noise * np.random.default_rng(3).normal(size=56) / math.sqrt(56)
    first, second = prepare_key(build.vector()), prepare_key(key)
    cosine = float(first[SUMMED_SLICE] @ second[SUMMED_SLICE])
    answer = ask(manager, key)
    assert answer.similarity == pytest.approx(cosine, abs=1e-6)
    assert answer.hit == (cosine > 0.85) == (noise < 1.0)
    assert f"{cosine:.3f}" in answer.reason


@pytest.mark.parametrize("insertion", [True, False])
def test_zero_keys_are_refused_and_leave_every_ranking_as_it_was(build, insertion: bool) -> None:
    manager = build.manager()
    for seed in range(6):
        insert(manager, build, build.vector(seed, 10 + seed, 20 + seed))
    questions = [build.vector(seed, 10 + seed, 21 + seed) for seed in range(6)]
    before = [(a.entry_id, a.similarity, a.margin) for a in (ask(manager, q) for q in questions)]
    zero = np.zeros(64)
    request = (
        partial(manager.apply, build.update(vector=zero))
        if insertion
        else partial(ask, manager, zero)
    )
    with pytest.raises(KeyInvalidError, match="must not be zero"):
        request()
    after = [(a.entry_id, a.similarity, a.margin) for a in (ask(manager, q) for q in questions)]
    assert before == after


def test_a_behavior_thrown_away_is_no_hit_and_says_so(build) -> None:
    manager = build.manager()
    entry = insert(manager, build)
    manager.entries.drop_behaviors([entry])
    answer = ask(manager, build.vector())
    assert not answer.hit
    assert answer.miss_reason == MissReason.EMPTY
    assert "thrown away" in answer.reason


def test_a_question_changes_nothing(build) -> None:
    manager = build.manager()
    insert(manager, build)
    before = manager.statistics()
    keys = manager.entries.tasks.index.keys.copy()
    for _ in range(3):
        ask(manager, build.vector())
    assert dataclasses.replace(manager.statistics()) == before
    assert np.array_equal(manager.entries.tasks.index.keys, keys)


def test_a_refused_key_leaves_rankings_as_they_were(build) -> None:
    manager = build.manager()
    insert(manager, build)
    before = ask(manager, build.vector())
    for bad in (np.zeros(64), np.full(64, np.nan)):
        with pytest.raises(Exception, match="key"):
            manager.apply(build.update(vector=bad))
        with pytest.raises(Exception, match="key"):
            ask(manager, bad)
    after = ask(manager, build.vector())
    assert (after.entry_id, after.similarity) == (before.entry_id, before.similarity)
    assert len(manager.entries) == 1
    assert np.isfinite(manager.entries.tasks.index.keys[:, SUMMED_SLICE]).all()


def test_looks_again_when_an_entry_is_overwritten_during_the_match(build) -> None:
    """A writer on another thread, replayed in the middle of the match by a guard."""

    class Interrupt:
        name = "interrupt"
        calls = 0

        def check(self, candidate, joints, behavior) -> None:
            self.calls += 1
            if self.calls > 1:
                return
            for mark in range(20):  # more than there are slots, so that the one just read is reused
                value = build.behavior(mark=mark / 100)
                manager.entries.insert(partition, key, value)

    interrupt = Interrupt()
    manager = build.manager(capacity=4, guards=(interrupt,))
    insert(manager, build)
    key = prepare_key(build.vector())
    partition = manager.entries.partitions[0]
    answer = ask(manager, build.vector())
    assert interrupt.calls == 2
    assert answer.entry_version == 21
    assert answer.behavior is not None
    assert (answer.behavior.coefficients[1:] == 0.19).all()


def test_looks_again_when_an_entry_is_removed_between_search_and_reading(
    build, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = build.manager()
    insert(manager, build)
    searcher = manager._searcher
    search = searcher.search

    def search_then_remove(*arguments):
        found = search(*arguments)
        manager.entries.remove([1])
        return found

    monkeypatch.setattr(searcher, "search", search_then_remove)
    answer = ask(manager, build.vector())
    assert (answer.hit, answer.entry_id) == (False, 0)
    assert "no entry in domain 'r1'" in answer.reason
