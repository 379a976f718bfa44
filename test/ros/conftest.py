"""Helpers of the tests in this folder and below are imported by name."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
