"""Several targets of other colors: the task says which one is looked for."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from encoding_builders import CAMERA, CENTER, INTRINSICS, SECOND, FakeRobot, feed, look, origin

from kv_action_router.contracts import Decision, DecisionReason, Sight, TaskState, TaskStatus
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder
from kv_action_router.encoding.images import ColorImage, DepthImage
from kv_action_router.encoding.synthetic import disc_on_table
from kv_action_router.errors import ConfigError

CONFIG = EncoderConfig(other_targets=("socket",), other_target_hues=(170.0,))
ASIDE = CENTER + np.array([-0.03, -0.12, 0.0])
PERIOD = 33_000_000
STATE = TaskState(
    decision=Decision(decision_id=1),
    status=TaskStatus.RUNNING,
    task="t",
    goal_id="g",
    stage="s",
    stage_index=0,
    stage_count=1,
    subtask="s_v1",
    phase=0.0,
    intent=np.zeros(128, np.float32),
    decision_reason=DecisionReason.STAGE_ENTRY,
    needs_target=True,
    needs_image=True,
    requested_monotonic_ns=0,
    allowed_contact="",
)


def two_discs() -> tuple[ColorImage, DepthImage]:
    """Return images of the first target, and of one of another color beside it."""
    color, depth = look()
    other, beside = disc_on_table(CAMERA, ASIDE, CONFIG.target_radius, CONFIG.target_height)
    there = np.abs(beside - look(center=np.array([9.0, 9.0, 0.01]))[1]) > 1e-6
    magenta = there & (other[..., 1] < other[..., 0] // 2)
    color[magenta] = (13, 217, 184)  # hue 170
    depth[there] = beside[there]
    return color, depth


@pytest.fixture
def made() -> KeyEncoder:
    encoder = KeyEncoder(CONFIG, FakeRobot())
    encoder.set_camera(INTRINSICS)
    return encoder


def seen(encoder: KeyEncoder, count: int) -> tuple[Sight, np.ndarray | None, float]:
    now = SECOND + count * PERIOD
    feed(encoder, now)
    color, depth = two_discs()
    key = encoder.on_image(color, depth, origin(now), now)
    assert key is not None
    place = None if key.target is None else key.target.pose.position
    return key.target_sight, place, key.image_sharpness


def test_the_task_says_which_target_is_looked_for(made: KeyEncoder) -> None:
    _, first, sharp = seen(made, 1)
    np.testing.assert_allclose(first, CENTER, atol=2e-3)
    assert math.isnan(sharp)
    made.on_task(dataclasses.replace(STATE, target="socket", needs_sharpness=True))
    now = SECOND + PERIOD + 1
    assert made.on_body(now, origin(now)).target is None  # the other one is not held for it
    sight, second, sharp = seen(made, 2)
    assert sight is Sight.SEEN
    np.testing.assert_allclose(second, ASIDE, atol=2e-3)
    assert sharp > 0.0
    made.on_task(STATE)
    np.testing.assert_allclose(seen(made, 3)[1], CENTER, atol=2e-3)


def test_a_camera_that_comes_later_looks_for_the_same(made: KeyEncoder) -> None:
    fresh = KeyEncoder(CONFIG, FakeRobot())
    fresh.on_task(dataclasses.replace(STATE, target="socket"))
    fresh.set_camera(INTRINSICS)
    np.testing.assert_allclose(seen(fresh, 1)[1], ASIDE, atol=2e-3)


def test_a_target_that_is_not_known_is_absent_with_a_reason(made: KeyEncoder) -> None:
    made.on_task(dataclasses.replace(STATE, target="plug"))
    sight, place, _ = seen(made, 1)
    assert (sight, place) == (Sight.ABSENT, None)
    assert made.perception is not None
    assert "'socket'" in made.perception.reason
    assert "'plug'" in made.perception.reason


def test_each_further_target_has_a_hue() -> None:
    with pytest.raises(ConfigError, match="other_target_hues"):
        EncoderConfig(other_targets=("socket", "clip"), other_target_hues=(170.0,))
    assert EncoderConfig().hues == {"": EncoderConfig().target_hue}
