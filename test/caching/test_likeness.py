"""A refresh's similarities are those that a decision would find, without preparing the key."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.caching.key_index import SliceComparer, prepare_key
from kv_action_router.caching.likeness import Gauge, is_plain_key
from kv_action_router.contracts import SLICES, SUMMED_SLICE
from kv_action_router.errors import KeyInvalidError


@given(
    st.integers(0, 2**32 - 1),
    st.floats(1e-3, 1e4),
    st.sets(st.sampled_from(sorted(SLICES))),
    st.booleans(),
)
def test_equals_what_a_decision_finds(seed: int, scale: float, empty: set[str], mine: bool) -> None:
    """Slices that are not held, on either side, and keys of any norm."""
    random = np.random.default_rng(seed)
    raw, entry = (random.normal(size=64).astype(np.float32) * scale for _ in range(2))
    for name in empty if len(empty) < len(SLICES) else ():
        (raw if mine else entry)[SLICES[name]] = 0.0
    key, stored = prepare_key(raw), prepare_key(entry)[SUMMED_SLICE]
    gauge = Gauge()
    gauge.compare(raw, prepare_key(random.normal(size=64))[SUMMED_SLICE])  # another entry before
    got = gauge.compare(raw, stored)
    slices = SliceComparer().compare(key[SUMMED_SLICE], stored)
    assert got.similarity == pytest.approx(float(key[SUMMED_SLICE] @ stored), abs=1e-5)
    assert got.target_similarity == pytest.approx(slices.target, abs=1e-5, nan_ok=True)
    assert got.worst_slice_similarity == pytest.approx(slices.worst, abs=1e-5, nan_ok=True)
    if not math.isnan(slices.worst):
        named = [SLICES[got.worst_slice], SLICES[slices.worst_slice]]  # two may be equally bad
        cosines = [
            key[part]
            @ stored[part]
            / np.sqrt((key[part] @ key[part]) * (stored[part] @ stored[part]))
            for part in named
        ]
        assert cosines[0] == pytest.approx(cosines[1], abs=1e-5)


def test_nothing_in_common_is_not_measured() -> None:
    target, scene = np.zeros(64, dtype=np.float32), np.zeros(64, dtype=np.float32)
    target[SLICES["target"]], scene[SLICES["scene"]] = 1.0, 1.0
    got = Gauge().compare(target, prepare_key(scene)[SUMMED_SLICE])
    assert got.similarity == 0.0
    assert math.isnan(got.target_similarity)
    assert math.isnan(got.worst_slice_similarity)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "vector",
    [
        np.full(64, np.nan, dtype=np.float32),
        np.append(np.ones(63), np.inf).astype(np.float32),
        np.zeros(64, dtype=np.float32),
        np.concatenate([np.zeros(56), np.ones(8)]).astype(np.float32),
        np.ones(63, dtype=np.float32),
        [1.0] * 63,
        None,
    ],
)
def test_what_is_no_key_is_never_plain(vector: object) -> None:
    assert not is_plain_key(vector)
    with pytest.raises(KeyInvalidError):
        prepare_key(vector)


@pytest.mark.filterwarnings("error")
def test_unusual_keys_are_left_to_the_slow_way() -> None:
    assert is_plain_key(np.ones(64, dtype=np.float32))
    for unusual in (np.ones(64), [1.0] * 64, np.full(64, 1e30, dtype=np.float32)):
        assert not is_plain_key(unusual)
        assert prepare_key(unusual).shape == (64,)
