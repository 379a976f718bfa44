"""A key-value cache of motion between "what to do" and "which motor does what when".

The import below joins this folder with the one of the same name that the ROS interface generator
installs, so that `kv_action_router.msg` is found also when the source tree comes first on the path.
"""

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
