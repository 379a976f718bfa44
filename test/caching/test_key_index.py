"""Keys: what one must be, and how two compare."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.caching.key_index import prepare_key, slice_similarities
from kv_action_router.contracts import SUMMED_SLICE
from kv_action_router.errors import KeyInvalidError


class TestPrepareKey:
    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            (np.zeros(64), "zero"),
            (np.concatenate([np.zeros(56), np.ones(8)]), "zero"),
            (np.full(64, 1e-12), "norm at least"),
            (np.full(64, np.nan), "finite"),
            (np.append(np.ones(63), np.inf), "index 63"),
            (np.full(64, 1e300), "finite"),
            (np.ones(63), "64 values, got 63"),
            (np.ones(65), "got 65"),
            (np.ones(1_000_000), "got 1000000"),
            ([], "got 0"),
            (np.ones((8, 8)), "shape"),
            (np.ones(64, dtype=complex), "real"),
            (np.ones(64, dtype=bool), "real"),
            (["a"] * 64, "real"),
            ([None] * 64, "real"),
            ([[1.0], [1.0, 2.0]], "64"),
            (None, "64"),
        ],
    )
    def test_refuses_with_field_limit_and_value(self, bad: object, message: str) -> None:
        with pytest.raises(KeyInvalidError, match=message) as caught:
            prepare_key(bad)
        assert str(caught.value).startswith("key must be") or "key must not" in str(caught.value)

    @pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
    def test_takes_any_real_dtype(self, build, dtype: type) -> None:
        key = build.vector()
        assert np.allclose(prepare_key(key.astype(dtype)), prepare_key(key), atol=1e-3)

    def test_takes_lists_integers_and_strided_arrays(self, build) -> None:
        key = build.vector()
        wide = np.zeros(128, dtype=np.float32)
        wide[::2] = key
        assert np.array_equal(prepare_key(wide[::2]), prepare_key(key))
        assert np.allclose(prepare_key(key.tolist()), prepare_key(key))
        assert prepare_key(np.ones(64, dtype=np.int64)).dtype == np.float32

    def test_negative_zero_is_zero(self) -> None:
        key = np.ones(64, dtype=np.float32)
        key[60] = -0.0
        assert not np.signbit(prepare_key(key)[60])

    def test_does_not_write_into_what_it_is_given(self, build) -> None:
        key = build.vector() * 3.0
        before = key.copy()
        prepare_key(key)
        assert np.array_equal(key, before)

    @given(st.floats(1e-3, 1e6))
    def test_scale_does_not_matter(self, scale: float) -> None:
        key = np.random.default_rng(5).normal(size=64)
        assert np.allclose(
            prepare_key(key * scale)[SUMMED_SLICE], prepare_key(key)[SUMMED_SLICE], atol=1e-6
        )


def test_slice_similarities_are_per_slice_and_nan_where_empty(build) -> None:
    key = build.vector()[SUMMED_SLICE]
    other = build.turned(build.vector(), "scene", 0.25)[SUMMED_SLICE]
    assert slice_similarities(key, other) == pytest.approx(
        {"target": 1.0, "scene": 0.25, "body": 1.0}, abs=1e-5
    )
    other[:16] = 0.0
    assert math.isnan(slice_similarities(key, other)["target"])
