"""Level, slope and edge of a face that lies flat."""

import numpy as np
import pytest

from kv_action_router.encoding.face import (
    OTHER,
    OUTSIDE,
    TOP,
    WALL,
    edge_points,
    face_shape,
    top_level,
)

GENERATOR = np.random.default_rng(4)


def test_uppermost_level_wins_over_the_wall_below_it():
    top = -0.37 + 2e-4 * GENERATOR.standard_normal(300)
    wall = GENERATOR.uniform(-0.38, -0.372, 120)
    level, thickness = top_level(np.concatenate((wall, top)))
    assert level == pytest.approx(-0.37, abs=1e-4)
    assert 0.0012 <= thickness <= 0.004


def test_shape_is_what_its_parts_say_one_by_one():
    count = 250
    x, y = GENERATOR.uniform(0.3, 0.34, count), GENERATOR.uniform(-0.1, -0.06, count)
    looks = GENERATOR.uniform(-0.9, -0.4, count)
    heights = 0.2 * (x - 0.32) + 3e-4 * GENERATOR.standard_normal(count)
    shape = face_shape(x + 1j * y, heights, looks, -0.4)
    weight = np.abs(looks) ** -3
    assert shape.center == pytest.approx(
        (np.average(x, weights=weight), np.average(y, weights=weight))
    )
    assert shape.variance == pytest.approx(np.var(heights))
    mean = np.array([x.mean(), y.mean()])
    along = np.column_stack((x, y)) @ (mean / np.hypot(*mean))
    assert shape.slope == pytest.approx(np.polyfit(along, heights, 1)[0])


def test_edges_lie_between_neighbors_on_the_plane_that_they_belong_to():
    kinds = np.array(
        [[OUTSIDE, TOP, OTHER], [OUTSIDE, WALL, OUTSIDE], [TOP, OTHER, WALL]], dtype=np.uint8
    )
    slopes = np.add.outer(1j * np.arange(3.0), np.arange(3.0))
    found = sorted(edge_points(kinds, slopes, 10.0, 20.0), key=lambda z: (z.real, z.imag))
    # the end of a row and the start of the next, here outside and top, are no neighbors
    expected = [5.0 + 0.0j, 0.0 + 15.0j, 10.0 + 20.0j, 30.0 + 20.0j, 40.0 + 30.0j]
    assert found == sorted(expected, key=lambda z: (z.real, z.imag))
