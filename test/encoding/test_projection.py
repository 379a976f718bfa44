"""Fixed projections are orthogonal and always the same."""

import numpy as np

from kv_action_router.encoding.projection import orthogonal_projection


def test_rows_are_orthonormal():
    matrix = orthogonal_projection(16, 48, 7)
    assert matrix.shape == (16, 48)
    assert np.allclose(matrix @ matrix.T, np.eye(16), atol=1e-12)


def test_columns_are_orthonormal_when_tall():
    matrix = orthogonal_projection(24, 10, 7)
    assert np.allclose(matrix.T @ matrix, np.eye(10), atol=1e-12)


def test_value_is_pinned_and_seeds_differ():
    # keys in stored caches were made with it
    matrix = orthogonal_projection(4, 6, 9)
    assert np.round(matrix[0], 6).tolist() == PINNED
    assert not np.allclose(matrix, orthogonal_projection(4, 6, 10))


PINNED: list[float] = [0.000677, -0.098752, -0.40304, 0.838401, 0.352322, 0.027564]
