"""A UR5e, simulated or real: the same system that ``kv_action_router.ros.bringup ur5e`` starts."""

from kv_action_router.ros.launching import describe


def generate_launch_description():
    """Return the description of the system, built from ``ros/system.py``."""
    return describe("ur5e")
