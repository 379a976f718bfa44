"""Keys: what one must be, and how two compare."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.caching.key_index import SliceComparer, prepare_key
from kv_action_router.contracts import SLICES, SUMMED_SLICE
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


class TestSlices:
    @pytest.mark.parametrize("name", list(SLICES))
    def test_the_slice_that_disagrees_is_named(self, build, name: str) -> None:
        key = build.vector()[SUMMED_SLICE]
        other = build.turned(build.vector(), name, 0.25)[SUMMED_SLICE]
        target, worst, similarity = SliceComparer().compare(key, other)
        assert worst == name
        assert similarity == pytest.approx(0.25, abs=1e-5)
        assert target == pytest.approx(0.25 if name == "target" else 1.0, abs=1e-5)

    def test_an_empty_slice_is_not_measured_and_never_the_worst(self, build) -> None:
        key = build.vector()[SUMMED_SLICE]
        other = build.turned(build.vector(), "scene", 0.25)[SUMMED_SLICE]
        other[SLICES["target"]] = 0.0
        comparer = SliceComparer()
        target, worst, similarity = comparer.compare(key, other)
        assert math.isnan(target)
        assert (worst, similarity) == ("scene", pytest.approx(0.25, abs=1e-5))
        nothing = comparer.compare(key, np.zeros_like(key))
        assert math.isnan(nothing.target)
        assert math.isnan(nothing.worst)

    @given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
    def test_cosines_are_cosines(self, seed: int, scale: float) -> None:
        """Of keys as they are found in an index: every component apart in memory."""
        random = np.random.default_rng(seed)
        keys = np.asfortranarray(random.normal(size=(3, 56)).astype(np.float32) * scale)
        got = SliceComparer().compare(keys[0], keys[1])
        cosines = {}
        for name, part in SLICES.items():
            one, other = keys[0, part].astype(float), keys[1, part].astype(float)
            cosines[name] = one @ other / math.sqrt((one @ one) * (other @ other))
        assert got.target == pytest.approx(cosines["target"], abs=1e-5)
        assert got.worst == pytest.approx(min(cosines.values()), abs=1e-5)
        assert cosines[got.worst_slice] == pytest.approx(got.worst, abs=1e-5)
        assert SliceComparer().compare(keys[0], -keys[0]).worst >= -1.0
