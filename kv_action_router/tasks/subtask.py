"""Subtasks: a name with a version, so that what was learned for another version never matches.

Whoever changes what a stage does raises its version: the entries of the old one are no candidates.
"""

from __future__ import annotations

import re

NAME_LIMIT = 256
_NAME = re.compile(r".*[^_]_v(0|[1-9][0-9]*)", re.DOTALL)


def why_no_subtask(name: str) -> str:
    """Return what a subtask's name must be and this one is not; empty = it is one."""
    if not 0 < len(name) <= NAME_LIMIT:
        return f"have 1 to {NAME_LIMIT} characters, got {len(name)}"
    if not _NAME.fullmatch(name):
        return f"be a name with its version, as in touch_approach_v1, got {name!r}"
    return ""
