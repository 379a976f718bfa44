"""Frames are rendered without a screen; where that cannot be done, the tests say so."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("MUJOCO_GL", "egl")  # before anybody imports mujoco


@pytest.fixture(scope="session")
def maker():
    """A maker of labeled frames of the touch cell."""
    from kv_action_router.learning.cells import cell
    from kv_action_router.learning.frames import FrameMaker

    try:
        made = FrameMaker(cell("touch"))
    except Exception as error:  # no EGL here: said, not hidden
        pytest.skip(f"images cannot be rendered: {error}")
    yield made
    made.close()
