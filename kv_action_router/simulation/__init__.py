"""The simulated robot with its sensors: physics, drives, camera and what only a simulator knows."""

import os

# MuJoCo reads this when it is first imported; EGL renders without a display and without a GPU.
os.environ.setdefault("MUJOCO_GL", "egl")
