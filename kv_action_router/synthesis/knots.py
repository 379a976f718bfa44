"""Which knots a motion may have."""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.errors import InputError
from kv_action_router.synthesis.basis import DEGREE, FEWEST, uniform_knots

SHORTEST = 1.0e-3  # [s] a motion's least duration


def made_uniform(knots: FloatArray, size: int) -> bool:
    """Say whether knots are bit by bit those of a uniform motion, and so beyond doubt."""
    if len(knots) != size + DEGREE + 1 or size < FEWEST or not SHORTEST <= knots[-1] < np.inf:
        return False
    return bool((knots == uniform_knots(size) * knots[-1]).all())


def check_knots(knots: FloatArray) -> None:
    """Refuse knots that no motion can have.

    Raises:
        InputError: not finite, not rising from 0, too short, or not clamped.
    """
    if not np.isfinite(knots).all():
        raise InputError("knots", "finite", "NaN or infinity")
    if knots[0] != 0.0 or (np.diff(knots) < 0.0).any():
        raise InputError("knots", "rising from 0", f"{knots[0]!r} to {knots[-1]!r}")
    if knots[-1] < SHORTEST:
        raise InputError("knots", f"at least {SHORTEST} s long", float(knots[-1]))
    if knots[DEGREE] != knots[0] or knots[-DEGREE - 1] != knots[-1]:
        raise InputError("knots", f"clamped ({DEGREE + 1} equal ones at each end)", knots.tolist())
    inner = knots[DEGREE:-DEGREE]
    if (inner[DEGREE:] - inner[:-DEGREE] <= 0.0).any() and len(inner) > DEGREE:
        raise InputError("knots", f"no more than {DEGREE} equal ones inside", knots.tolist())
