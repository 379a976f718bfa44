"""Where the package's own files are."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def checkout() -> Path:
    """Root of the source tree."""
    return Path(__file__).parents[2]
