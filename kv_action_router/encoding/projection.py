"""Fixed orthogonal projections: the same on every machine, in every process, for ever.

A slice has fewer numbers than there are inputs. A random projection with orthonormal rows keeps
distances nearly, favors no input, and needs no training. The generator is NumPy's legacy MT19937
stream, which is frozen by promise; the sign of each row is fixed, since QR leaves it open.
"""

from __future__ import annotations

import numpy as np

from kv_action_router.contracts import FloatArray


def orthogonal_projection(outputs: int, inputs: int, seed: int) -> FloatArray:
    """Return a matrix (outputs, inputs): orthonormal rows, or columns when it is tall."""
    normal = np.random.RandomState(seed).standard_normal((max(outputs, inputs),) * 2)
    basis, upper = np.linalg.qr(normal)
    basis *= np.where(np.diag(upper) < 0.0, -1.0, 1.0)
    return np.ascontiguousarray(basis[:outputs, :inputs])
