"""Stage 4: trajectory chunks to actuator commands.

Everything but ``node.py`` runs without ROS. The execution layer can be used alone, inside
somebody's own driver:

    from kv_action_router.injection import load_execution_value, update_cache

    value = load_execution_value("ur5e")
    value = update_cache(sample, value)  # a DriveSample, JointSample or ImuSample
"""

from kv_action_router.injection.execution_layer import update_cache
from kv_action_router.robots.execution_values import load_execution_value

__all__ = ["load_execution_value", "update_cache"]
