"""Calibration recommends what the log vouches for, and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.errors import InputError
from kv_action_router.reporting.calibration import Trial, calibrate


def shift(
    seed: int, count: int, edge: float, executed_from: float = 0.5
) -> tuple[list[Trial], np.random.Generator]:
    """Hits above ``edge`` are good, below it three of ten are false."""
    generator = np.random.default_rng(seed)
    trials = []
    for similarity in generator.uniform(0.4, 1.0, count):
        executed = bool(similarity > executed_from)
        good = bool(similarity > edge or generator.random() > 0.3)
        trials.append(Trial(float(similarity), executed, good))
    return trials, generator


def test_the_edge_between_good_and_bad_hits_is_found() -> None:
    trials, _ = shift(1, 6000, edge=0.8)
    result = calibrate("table", trials)
    assert result.recommended is not None
    assert 0.77 < result.recommended.threshold < 0.83
    assert result.recommended.false_rate_bound <= 0.01
    low, high = result.recommended.hit_rate_low, result.recommended.hit_rate_high
    assert low < result.recommended.hit_rate < high
    assert "may be" in result.reason


def test_too_few_hits_vouch_for_nothing() -> None:
    result = calibrate("table", [Trial(0.9, True, True)] * 298)
    assert result.recommended is None
    assert result.reason.startswith("298 executed hits, at least 299 are needed")
    assert calibrate("table", [Trial(0.9, True, True)] * 299).recommended is not None


def test_what_was_never_executed_is_not_recommended() -> None:
    trials, _ = shift(2, 4000, edge=0.0, executed_from=0.85)
    result = calibrate("table", trials)
    assert result.recommended is not None
    assert result.recommended.threshold >= 0.85 - 1e-3
    assert "no executed hit was less like" in result.reason


def test_the_literature_is_shown_as_it_would_do_here() -> None:
    trials, _ = shift(3, 4000, edge=0.8)
    strict, lax = calibrate("table", trials).literature
    assert (strict.threshold, lax.threshold) == (0.85, 0.72)
    assert strict.false_hits == 0 and lax.false_hits > 0
    assert lax.hit_rate > strict.hit_rate


def test_decisions_without_a_candidate_do_not_count() -> None:
    trials = [Trial(math.nan, False, False)] * 50 + [Trial(0.9, True, True)] * 300
    assert calibrate("table", trials).decisions == 300
    assert calibrate("empty", []).recommended is None


@pytest.mark.parametrize("field", ["risk", "confidence"])
@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, math.nan])
def test_bad_arguments_are_named(field: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{field} must be between 0 and 1"):
        calibrate("table", [], **{field: value})


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), count=st.integers(0, 900), risk=st.sampled_from([0.02, 0.05])
)
def test_more_false_hits_never_lower_the_threshold(seed: int, count: int, risk: float) -> None:
    trials, generator = shift(seed, count, edge=0.75)
    worse = [Trial(t.similarity, t.executed, t.good and generator.random() > 0.05) for t in trials]
    before, after = (calibrate("table", given, risk).recommended for given in (trials, worse))
    if after is not None:
        assert before is not None
        assert before.threshold <= after.threshold
    for level in calibrate("table", trials, risk).curve:
        assert level.false_hits <= level.hits
        assert level.false_rate <= level.false_rate_bound


def test_false_promises_are_as_rare_as_the_confidence_says() -> None:
    """Of forty logs with 2 % false hits everywhere, few may pass for 1 %."""
    passed = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        trials = [
            Trial(float(s), True, bool(generator.random() > 0.02))
            for s in generator.uniform(0.8, 1.0, 600)
        ]
        passed += calibrate("table", trials).recommended is not None
    assert passed <= 2 + 4  # 5 % of 40, and three standard deviations
