"""A DDS domain of a benchmark's own: it hears no robot, and no robot hears it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from kv_action_router.ros.shared_memory import without_orphans

_FIRST, _COUNT = 60, 40  # by process id: two benchmarks at the same time rarely meet


@contextlib.contextmanager
def in_domain() -> Iterator[int]:
    """Use a domain of this host alone; what killed processes leave in shared memory is removed.

    A domain that the environment names already (a test's) is kept.
    """
    names = ("ROS_DOMAIN_ID", "ROS_AUTOMATIC_DISCOVERY_RANGE")
    before = {name: os.environ.get(name) for name in names}
    os.environ.setdefault("ROS_DOMAIN_ID", str(_FIRST + os.getpid() % _COUNT))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    try:
        with without_orphans():
            yield int(os.environ["ROS_DOMAIN_ID"])
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
