"""Values of different shapes share slots: each takes its own room, and gives it back."""

from __future__ import annotations

import dataclasses
import tracemalloc

import numpy as np
import pytest

from kv_action_router.caching.layers.behavior import BehaviorLayer, BehaviorSize
from kv_action_router.caching.layers.shelves import ROWS, Shape, Shelf, are_uniform, unit_knots
from kv_action_router.contracts import BehaviorValue
from kv_action_router.synthesis.basis import basis, uniform_knots

SIZE = BehaviorSize()


def bent(value: BehaviorValue) -> BehaviorValue:
    """Return the value with one inner knot moved: it does not follow from the duration."""
    knots = value.knots.copy()
    knots[value.degree + 1] *= 0.9
    return dataclasses.replace(value, knots=knots)


def same(first: BehaviorValue, second: BehaviorValue) -> bool:
    return (
        first.subtask == second.subtask
        and np.array_equal(first.knots, second.knots)
        and np.array_equal(first.coefficients, second.coefficients)
        and np.array_equal(first.decay, second.decay)
    )


@pytest.mark.parametrize("duration", [1.0, 0.1, 2.0 / 3.0, 7.123456789])
def test_knots_of_planned_motions_follow_from_their_duration(duration: float) -> None:
    """Bit by bit, as the planner makes them: what is read is what was planned."""
    knots = basis(28).knots * duration
    assert are_uniform(knots, 28, 5)
    assert np.array_equal(unit_knots(28, 5) * duration, knots)
    assert np.array_equal(unit_knots(28, 5), uniform_knots(28))
    knots[7] = np.nextafter(knots[7], 0.0)
    assert not are_uniform(knots, 28, 5)


@pytest.mark.parametrize("precision", ["double", "single"])
def test_knots_come_back_bit_by_bit_uniform_or_not(build, precision: str) -> None:
    layer = BehaviorLayer(4, dataclasses.replace(SIZE, precision=precision))
    for value in (build.behavior(points=40), bent(build.behavior(points=40))):
        assert np.array_equal(layer.read(layer.put(value)).knots, value.knots)


def test_slots_change_their_shape_over_and_over(build) -> None:
    """Every slot holds what was written last, while rows go from shelf to shelf."""
    random = np.random.default_rng(3)
    layer = BehaviorLayer(20, SIZE)
    held: dict[int, BehaviorValue] = {}
    for mark in range(150):
        points = int(random.choice([6, 12, 40]))
        value = build.behavior(points=points, mark=float(mark))
        value = bent(value) if random.random() < 0.3 else value
        if len(held) == 20:
            slot = int(random.choice(list(held)))
            layer.release(slot)
            del held[slot]
        held[layer.put(value)] = value
        assert all(same(layer.read(slot), kept) for slot, kept in held.items())


def test_many_values_at_once_are_those_one_by_one(build) -> None:
    values = [build.behavior(mark=float(mark)) for mark in range(2 * ROWS + 5)]
    values[1::3] = [bent(value) for value in values[1::3]]
    layer = BehaviorLayer(len(values), SIZE)
    layer.release(layer.put(build.behavior(points=40)))
    slots = layer.restore(
        values[0],
        np.array([value.knots for value in values]),
        np.array([value.coefficients.ravel() for value in values]),
        np.array([value.phase for value in values]),
        np.array([value.decay for value in values]),
        None if values[0].target is None else np.array(
            [[*value.target.position, *value.target.orientation] for value in values]
        ),
    )  # fmt: skip
    assert len(set(slots.tolist())) == len(values)
    assert all(same(layer.read(slot), value) for slot, value in zip(slots, values, strict=True))


def fill(layer: BehaviorLayer, value: BehaviorValue, count: int) -> list[int]:
    """Put the same value in over and over, at once; return the slots."""
    slots = layer.restore(
        value,
        np.tile(value.knots, (count, 1)),
        np.tile(value.coefficients.ravel(), (count, 1)),
        np.zeros(count),
        np.tile(value.decay, (count, 1)),
        None,
    )
    return [int(slot) for slot in slots]


def test_memory_is_that_of_what_is_held(build) -> None:
    """Not that of the largest value there is room for; and a shape that went takes none."""
    count = 4 * ROWS
    short, long = (build.behavior(points=points) for points in (12, 40))
    tracemalloc.start()
    layer = BehaviorLayer(count, SIZE)
    slots = fill(layer, short, count)
    held = tracemalloc.get_traced_memory()[0]
    assert held < 1.25 * count * 8 * (short.coefficients.size + 1 + 3 + 1 + 1)
    assert held < count * layer.largest_value / 10
    for slot in slots:
        layer.release(slot)
    fill(layer, long, count)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 1.25 * count * 8 * (long.coefficients.size + 1 + 3 + 1 + 1)


def test_a_row_whose_memory_went_is_read_without_an_error(build) -> None:
    """A reader may hold the place of a value that is given up meanwhile: it finds out later."""
    shape = Shape("touch", ("a/position", "b/position"), 5, 12, True, True)
    shelf = Shelf(shape, "double")
    (row,) = shelf.take(1).tolist()
    shelf.give_back(row)
    read = shelf.read(row)
    assert read.coefficients.shape == (12, 2)
    assert shelf.take(ROWS + 1).tolist() == [*range(ROWS), ROWS]
