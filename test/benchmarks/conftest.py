"""The benchmarks are programs beside the package: their folder is put on the path."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = str(Path(__file__).resolve().parents[2] / "benchmarks")
if FOLDER not in sys.path:
    sys.path.append(FOLDER)
