"""Lets the tests of this folder import their builders, whatever the import mode."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cv2

sys.path.insert(0, str(Path(__file__).parent))
cv2.setNumThreads(1)
os.environ.setdefault("MUJOCO_GL", "egl")  # before anybody imports mujoco
