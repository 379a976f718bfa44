"""Frames are rendered without a screen; where that cannot be done, the tests say so."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("MUJOCO_GL", "egl")  # before anybody imports mujoco


@pytest.fixture(scope="session")
def maker(frames_of):
    """A maker of labeled frames of the touch cell."""
    with frames_of("touch") as made:
        yield made
