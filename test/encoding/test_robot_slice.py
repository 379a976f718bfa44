"""A robot's slice depends on its identity alone."""

import subprocess
import sys

import numpy as np
import pytest

from kv_action_router.encoding import robot_slice
from kv_action_router.errors import InputError

_PRINT = (
    "from kv_action_router.encoding import robot_slice, projection;"
    "print(robot_slice.encode('ur5e').tobytes().hex());"
    "print(projection.orthogonal_projection(4, 6, 9).tobytes().hex())"
)


def test_unit_norm_and_distinct():
    slices = [robot_slice.encode(name) for name in ("ur5e", "agv-01", "7bot", "ur5e ")]
    for values in slices:
        assert np.linalg.norm(values) == pytest.approx(1.0, abs=1e-6)
    for i, first in enumerate(slices):
        for second in slices[i + 1 :]:
            assert float(first @ second) < 0.99


def test_value_is_pinned():
    # stored caches compare it: it must never change
    expected = robot_slice.encode("ur5e")
    assert expected.astype("<f4").tobytes().hex() == PINNED


def test_same_under_other_hash_seeds():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", _PRINT],
            env={**__import__("os").environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        ).stdout
        for seed in ("1", "4242")
    }
    assert len(outputs) == 1


def test_empty_identity_is_refused():
    with pytest.raises(InputError, match="identity"):
        robot_slice.encode("")


PINNED = "20b3173db6c6203f466886be3aeec73e1708e0bec4a64e3dce42de3edabf9a3c"
