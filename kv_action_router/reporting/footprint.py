"""How much memory an object holds, with everything that it alone leads to."""

from __future__ import annotations

import gc
import sys
import types
from collections.abc import Iterable

import numpy as np

_NOT_ITS_OWN = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.CodeType,
)


def footprint(root: object, without: Iterable[object] = ()) -> int:
    """Return the bytes of an object and of all objects that can be reached from it.

    Code is left out: types, modules, functions, and bound methods with what they are bound to.

    Args:
        root: where to begin.
        without: objects that belong to somebody else; neither they nor what only they lead to
            counts.
    """
    seen = {id(other) for other in without}
    waiting, total = [root], 0
    while waiting:
        held = waiting.pop()
        if id(held) in seen or isinstance(held, _NOT_ITS_OWN):
            continue
        seen.add(id(held))
        total += sys.getsizeof(held)
        waiting += gc.get_referents(held)
        if isinstance(held, np.ndarray):  # the collector knows nothing of what a view looks at
            waiting.append(held.base)
    return total
