"""Thresholds from logged decisions: the least similarity at which hits are still good enough.

For each scene the executed hits are ordered by similarity. The threshold is lowered from the
strictest one that has enough hits above it, step by step, while the exact upper bound of the share
of false hits above it stays within the risk; the first step that fails ends it. Testing in a fixed
order keeps the confidence of the whole at that of one test (fixed-sequence testing, as in
Angelopoulos et al., "Learn then Test", 2021). What was never executed is never recommended: a
threshold below the one in force while the log was written needs a log written with a lower one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError
from kv_action_router.reporting.statistics import upper_confidence_bound

LITERATURE = (0.85, 0.72)  # corridor, and warehouse racks
STEPS = 40


@dataclass(frozen=True, slots=True)
class Trial:
    """One decision as calibration sees it.

    Attributes:
        similarity: of the best candidate, -1 to 1.
        executed: it was a hit, and its outcome is known.
        good: the executed hit did what it should.
    """

    similarity: float
    executed: bool
    good: bool


@dataclass(frozen=True, slots=True)
class Level:
    """What a threshold would do.

    Attributes:
        threshold: similarity that a hit must exceed.
        hits, false_hits: executed ones above it.
        false_rate, false_rate_bound: share of false hits, and its exact upper bound; NaN = no hit.
        hit_rate: share of all decisions above it.
        hit_rate_low, hit_rate_high: exact interval of that share.
    """

    threshold: float
    hits: int
    false_hits: int
    false_rate: float
    false_rate_bound: float
    hit_rate: float
    hit_rate_low: float
    hit_rate_high: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A scene's result.

    Attributes:
        scene: its name.
        decisions: that had a candidate.
        recommended: level to use; None = none can be vouched for.
        reason: why that one, or why none.
        literature: what the literature's thresholds would do here.
        curve: levels from strict to lax.
    """

    scene: str
    decisions: int
    recommended: Level | None
    reason: str
    literature: tuple[Level, ...]
    curve: tuple[Level, ...]


@dataclass(frozen=True, slots=True)
class _Seen:
    """Trials with a finite similarity, as arrays (n,)."""

    similarity: FloatArray
    executed: npt.NDArray[np.bool_]
    good: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, trials: Sequence[Trial]) -> _Seen:
        kept = [trial for trial in trials if math.isfinite(trial.similarity)]
        return cls(
            np.array([trial.similarity for trial in kept], dtype=float),
            np.array([trial.executed for trial in kept], dtype=bool),
            np.array([trial.good for trial in kept], dtype=bool),
        )


def calibrate(
    scene: str, trials: Sequence[Trial], risk: float = 0.01, confidence: float = 0.95
) -> Calibration:
    """Return the threshold that a scene's log vouches for.

    Args:
        scene: its name.
        trials: its decisions; those without a finite similarity are left out.
        risk: largest share of false hits among the hits, between 0 and 1.
        confidence: of the exact bounds, between 0 and 1.

    Raises:
        InputError: risk or confidence is out of range.
    """
    for field, value in (("risk", risk), ("confidence", confidence)):
        if not 0.0 < value < 1.0:
            raise InputError(field, "between 0 and 1, both excluded", value)
    seen = _Seen.of(trials)
    executed = sorted(seen.similarity[seen.executed].tolist(), reverse=True)
    needed = math.ceil(math.log(1.0 - confidence) / math.log(1.0 - risk))
    thresholds = _thresholds(executed, min(needed, len(executed)))
    levels = [_level(threshold, seen, confidence) for threshold in thresholds]
    literature = tuple(_level(threshold, seen, confidence) for threshold in LITERATURE)
    recommended, reason = None, ""
    if len(executed) < needed:
        reason = (
            f"{len(executed)} executed hits, at least {needed} are needed to vouch for "
            f"{risk:g} false hits with confidence {confidence:g}"
        )
    else:
        for level in levels:
            if level.false_rate_bound > risk:
                reason = (
                    f"above {level.threshold:.4f} the share of false hits may be "
                    f"{level.false_rate_bound:.4f}, limit {risk:g}"
                )
                break
            recommended = level
        else:
            reason = f"no executed hit was less like its entry than {levels[-1].threshold:.4f}"
    return Calibration(scene, len(seen.similarity), recommended, reason, literature, tuple(levels))


def _thresholds(executed: Sequence[float], first: int) -> list[float]:
    """Return thresholds from strict to lax, each just below one of the hits (rising counts)."""
    if not executed:
        return []
    counts = np.unique(np.linspace(max(1, first), len(executed), STEPS).astype(int))
    return [float(np.nextafter(executed[count - 1], -np.inf)) for count in counts]


def _level(threshold: float, seen: _Seen, confidence: float) -> Level:
    above = seen.similarity > threshold
    hits = int(np.count_nonzero(above & seen.executed))
    false_hits = int(np.count_nonzero(above & seen.executed & ~seen.good))
    decisions = len(seen.similarity)
    low, high = _interval(int(np.count_nonzero(above)), decisions, confidence)
    return Level(
        threshold,
        hits,
        false_hits,
        false_hits / hits if hits else math.nan,
        upper_confidence_bound(false_hits, hits, confidence) if hits else math.nan,
        float(above.mean()) if decisions else math.nan,
        low,
        high,
    )


def _interval(events: int, trials: int, confidence: float) -> tuple[float, float]:
    """Return the exact two-sided (Clopper-Pearson) interval of a share."""
    if trials == 0:
        return math.nan, math.nan
    tail = (1.0 - confidence) / 2.0
    low = float(beta.ppf(tail, events, trials - events + 1)) if events else 0.0
    high = float(beta.ppf(1.0 - tail, events + 1, trials - events)) if events < trials else 1.0
    return low, high
