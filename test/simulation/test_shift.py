"""A short shift: what a cache does over its life."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from kv_action_router.caching.config import CachingConfig
from kv_action_router.errors import ConfigError
from kv_action_router.simulation import shift as shifts
from kv_action_router.simulation.drift import Workpiece, workpieces
from kv_action_router.simulation.shift import Shift, ShiftConfig, ShiftCycle, shift_episode

Ran = tuple[Shift, list[ShiftCycle]]
SPOILED = 2
ASIDE = np.array([0.0, 0.08, 0.0])  # [m]


def undisturbed(cycles: int, seed: int) -> tuple[Workpiece, ...]:
    """Return work-pieces that nobody reaches for."""
    return tuple(
        dataclasses.replace(
            piece, interrupted_after=math.nan, canceled_after=math.nan, temperature=40.0
        )
        for piece in workpieces(cycles, seed)
    )


@pytest.fixture(scope="module")
def spoiled() -> Ran:
    """Six cycles on one pallet; the approach is spoiled before the third."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shifts, "workpieces", undisturbed)
        shift = Shift(ShiftConfig(cycles=6, spoiled_before=SPOILED))
        return shift, list(shift.cycles())


def test_what_was_planned_once_is_reused_from_then_on(spoiled: Ran) -> None:
    _, cycles = spoiled
    assert all(cycle.success for cycle in cycles)
    assert [cycle.insertions for cycle in cycles[:SPOILED]] == [3, 0]
    assert [(cycle.decisions, cycle.task_hits, cycle.behavior_hits) for cycle in cycles[:2]] == [
        (3, 0, 0),
        (3, 3, 3),
    ]
    assert max(cycle.touch_error for cycle in cycles[:SPOILED]) < 0.001


def test_a_spoiled_entry_is_out_after_two_failures_and_planned_anew(spoiled: Ran) -> None:
    shift, cycles = spoiled
    assert shift.spoiled > 0
    assert [cycle.spoiled for cycle in cycles].index(True) == SPOILED
    assert [cycle.false_hits for cycle in cycles] == [0, 0, 1, 1, 0, 0]
    assert [cycle.lost_confidence for cycle in cycles] == [0, 0, 0, 1, 0, 0]
    anew = cycles[SPOILED + 2]
    assert anew.task_hits < anew.decisions
    assert anew.insertions >= 1
    assert anew.touch_error < 0.001
    assert (cycles[-1].task_hits, cycles[-1].false_hits) == (3, 0)


def test_counts_of_the_cache_and_of_the_task_agree(spoiled: Ran) -> None:
    shift, cycles = spoiled
    report = shift.episode.caching.manager.statistics()
    task, behavior, execution = report.layers
    assert task.counters.decisions == sum(cycle.decisions for cycle in cycles)
    assert task.counters.hits == sum(cycle.task_hits for cycle in cycles)
    assert task.counters.false_hits == sum(cycle.false_hits for cycle in cycles)
    assert task.entries == cycles[-1].entries
    assert behavior.counters.hits > 0
    assert execution.counters.hits == execution.counters.decisions > 0
    assert shift.episode.caching.refused == []


def test_a_piece_that_is_moved_while_the_arm_is_held_is_touched_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def reached_for(cycles: int, seed: int) -> tuple[Workpiece, ...]:
        return tuple(
            dataclasses.replace(piece, interrupted_after=0.4, moved_to=piece.position + ASIDE)
            for piece in undisturbed(cycles, seed)
        )

    monkeypatch.setattr(shifts, "workpieces", reached_for)
    cycle = next(Shift(ShiftConfig(cycles=1)).cycles())
    assert cycle.success
    assert cycle.decisions == 4
    assert cycle.touch_error < 0.002


def test_a_canceled_task_leaves_the_arm_where_it_stops_and_the_next_begins_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def taken_away(cycles: int, seed: int) -> tuple[Workpiece, ...]:
        first, *others = undisturbed(cycles, seed)
        return dataclasses.replace(first, canceled_after=0.5), *others

    monkeypatch.setattr(shifts, "workpieces", taken_away)
    shift = Shift(ShiftConfig(cycles=2))
    cycles = shift.cycles()
    first = next(cycles)
    assert (first.success, first.canceled) == (False, True)
    assert np.abs(shift.episode.robot.plant.position - shift.episode.robot.home).max() > 0.1
    second = next(cycles)
    assert (second.success, second.canceled) == (True, False)
    assert second.touch_error < 0.001


def test_masked_slices_are_zero_in_what_is_stored() -> None:
    episode = dataclasses.replace(shift_episode(), masked_slices=("body",))
    shift = Shift(ShiftConfig(cycles=1, episode=episode))
    next(shift.cycles())
    entries = shift.episode.caching.manager.entries
    assert len(entries) == 3
    for slot in entries.tasks.slots.values():
        key = entries.tasks.key(slot)
        assert not key[40:56].any()
        assert key[:40].any()


@pytest.mark.parametrize("cycle", [-1, 5])
def test_a_cycle_to_spoil_must_be_one_of_the_shift(cycle: int) -> None:
    with pytest.raises(ConfigError, match="spoiled_before"):
        ShiftConfig(cycles=5, spoiled_before=cycle)


def test_a_shift_is_as_others_but_for_rates() -> None:
    assert shift_episode().caching == CachingConfig()
