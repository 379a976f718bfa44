"""What a stage sets in the execution value: in force while it lasts, and never kept."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from kv_action_router.caching.layers.execution import ExecutionLayer
from kv_action_router.contracts import EXECUTION_SLOTS, SLOT, ExecutionValue
from kv_action_router.errors import EntryInvalidError, EntryNotFoundError
from kv_action_router.robots.execution_values import load_execution_value

LIMIT, PROTECTIVE = SLOT["stage_effort_limit"], SLOT["protective_effort_limit"]
GAIN = SLOT["integral_gain"]
SPINDLE = 6


@pytest.fixture
def layer() -> ExecutionLayer:
    found = ExecutionLayer()
    found.begin("d", load_execution_value("ur5e_spindle"))
    return found


def wish(layer: ExecutionLayer, *numbers: tuple[int, int, float]) -> ExecutionValue:
    """Ask for drive, slot, number."""
    value = layer.value("d")
    assert value is not None
    slots = np.full((len(value.drives), EXECUTION_SLOTS), np.nan, np.float32)
    for drive, slot, number in numbers:
        slots[drive, slot] = number
    return ExecutionValue(value.drives, slots, value.confident, 0, 0, "stage: tighten")


def test_it_is_in_force_as_a_new_version_and_is_put_back(layer: ExecutionLayer) -> None:
    before = layer.value("d")
    assert before is not None
    laid = layer.lay_over("d", wish(layer, (SPINDLE, LIMIT, 3.5), (0, GAIN, 0.0)))
    assert (laid.version, laid.base_version) == (2, 1)
    assert laid.slots[SPINDLE, LIMIT] == np.float32(3.5)
    assert laid.slots[0, GAIN] == 0.0
    assert layer.value("d") is laid
    back = layer.lay_over("d", wish(layer))
    assert back.version == 3
    np.testing.assert_array_equal(back.slots, before.slots)


def test_the_next_stage_stands_for_itself(layer: ExecutionLayer) -> None:
    before = layer.value("d")
    assert before is not None
    layer.lay_over("d", wish(layer, (SPINDLE, LIMIT, 0.5), (0, GAIN, 0.0)))
    laid = layer.lay_over("d", wish(layer, (SPINDLE, LIMIT, 1.5)))
    assert laid.slots[SPINDLE, LIMIT] == np.float32(1.5)
    assert laid.slots[0, GAIN] == before.slots[0, GAIN]


def test_what_is_kept_knows_nothing_of_it(layer: ExecutionLayer) -> None:
    before = layer.value("d")
    laid = layer.lay_over("d", wish(layer, (SPINDLE, LIMIT, 3.5)))
    durable = layer.durable("d")
    assert before is not None
    assert durable is not None
    np.testing.assert_array_equal(durable.slots, before.slots)
    assert durable.version == laid.version
    with pytest.raises(EntryNotFoundError, match="one that is kept"):
        layer.go_back("d", "test", version=laid.version)


def test_what_a_fault_taught_meanwhile_stays(layer: ExecutionLayer) -> None:
    laid = layer.lay_over("d", wish(layer, (SPINDLE, LIMIT, 3.5), (0, GAIN, 0.0)))
    slots = laid.slots.copy()
    slots[SPINDLE, LIMIT] = 3.0
    learned = dataclasses.replace(laid, slots=slots, version=3, base_version=2)
    layer.replace("d", learned)
    back = layer.lay_over("d", wish(layer))
    assert back.slots[SPINDLE, LIMIT] == np.float32(3.0)
    assert back.slots[0, GAIN] > 0.0


def test_no_limit_goes_above_what_protects(layer: ExecutionLayer) -> None:
    before = layer.value("d")
    with pytest.raises(EntryInvalidError, match="spindle_joint: a stage's limit must be at most 5"):
        layer.lay_over("d", wish(layer, (SPINDLE, LIMIT, 5.5)))
    with pytest.raises(EntryInvalidError, match="slots"):
        layer.lay_over("d", dataclasses.replace(wish(layer), slots=np.zeros((1, 2), np.float32)))
    unknown = dataclasses.replace(wish(layer, (SPINDLE, LIMIT, 1.0)), drives=(*"abcdef", "gripper"))
    with pytest.raises(EntryInvalidError, match="got 'gripper'"):
        layer.lay_over("d", unknown)
    with pytest.raises(EntryNotFoundError, match="'other'"):
        layer.lay_over("other", wish(layer))
    assert layer.value("d") is before
