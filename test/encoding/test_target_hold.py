"""A hidden target is held with its age; one that is gone, or hidden too long, is not."""

import numpy as np
import pytest
from encoding_builders import CENTER, MS, SECOND

from kv_action_router.contracts import Pose, TargetEstimate
from kv_action_router.encoding.target_hold import TargetHold

TARGET = TargetEstimate(Pose(CENTER), np.eye(6))


def hold():
    made = TargetHold(10.0, 3)
    made.seen(TARGET, SECOND)
    return made


def test_nothing_before_the_first():
    target, age = TargetHold(10.0, 3).current(SECOND)
    assert target is None
    assert age == float("inf")


def test_hidden_is_held_with_its_age_up_to_the_limit():
    made = hold()
    for _ in range(50):
        made.not_seen(place_is_empty=False)
    target, age = made.current(SECOND + 500 * MS)
    assert target is TARGET
    assert age == pytest.approx(0.5)
    assert made.current(SECOND + 10 * SECOND)[0] is TARGET
    target, age = made.current(SECOND + 10 * SECOND + MS)
    assert target is None
    assert age == pytest.approx(10.001)


def test_gone_only_after_several_images_in_a_row():
    made = hold()
    for empty in (True, True, False, True, True):
        made.not_seen(empty)
    assert made.held is TARGET
    made.not_seen(place_is_empty=True)
    assert made.held is None


def test_seen_again_starts_anew():
    made = hold()
    made.not_seen(place_is_empty=True)
    made.not_seen(place_is_empty=True)
    made.seen(TARGET, 2 * SECOND)
    made.not_seen(place_is_empty=True)
    assert made.current(2 * SECOND)[1] == 0.0
    made.drop()
    assert made.current(2 * SECOND)[0] is None
