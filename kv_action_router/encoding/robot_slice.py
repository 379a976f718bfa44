"""Robot slice (8): a hash of the robot's identity. Compared, never summed."""

from __future__ import annotations

import hashlib

import numpy as np

from kv_action_router.contracts import ROBOT_SIZE, Float32Array
from kv_action_router.errors import InputError


def encode(identity: str) -> Float32Array:
    """Return a unit vector (8,) that depends on the identity alone (BLAKE2b, no process seed).

    Raises:
        InputError: the identity is empty.
    """
    if not identity:
        raise InputError("robot identity", "not empty", identity)
    digest = hashlib.blake2b(identity.encode(), digest_size=4 * ROBOT_SIZE, person=b"robot slice")
    words = np.frombuffer(digest.digest(), dtype="<u4").astype(float)
    values = (words + 0.5) / 2.0**31 - 1.0  # in (-1, 1), never zero
    return (values / np.linalg.norm(values)).astype(np.float32)
