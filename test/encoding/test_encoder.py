"""The whole of stage 1 without ROS: keys that are finite, of constant norm, and honest in age."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from encoding_builders import (
    CENTER,
    JOINTS,
    MS,
    POSE,
    SECOND,
    FakeRobot,
    drives,
    encoder,
    feed,
    hide,
    imu,
    look,
    origin,
    pixel_of,
)

from kv_action_router.contracts import (
    BODY_SLICE,
    ROBOT_SLICE,
    SCENE_SLICE,
    SUMMED_SLICE,
    TARGET_SLICE,
    Decision,
    DecisionReason,
    Sight,
    TaskState,
    TaskStatus,
    Trigger,
)
from kv_action_router.encoding import target_slice
from kv_action_router.encoding.backend import SEGMENTATION_ID
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.encoder import KeyEncoder
from kv_action_router.encoding.images import decode_color
from kv_action_router.encoding.odometry import OdometryEvent, OdometrySample
from kv_action_router.encoding.warm_up import warm_up
from kv_action_router.errors import ImageError, InputError, MissingJointsError


def image_key(made, images, now=SECOND):
    feed(made, now)
    return made.on_image(*images, origin(now), now)


def norms(key):
    return [
        float(np.linalg.norm(key.vector[part]) ** 2)
        for part in (TARGET_SLICE, SCENE_SLICE, BODY_SLICE, ROBOT_SLICE)
    ]


def hidden():
    color, depth = look()
    row, column = pixel_of(CENTER)
    hide(color, depth, slice(row - 25, row + 25), slice(column - 25, column + 25))
    return color, depth


def test_image_key_holds_everything():
    key = image_key(encoder(), look())
    assert key.trigger is Trigger.IMAGE
    assert key.vector.dtype == np.float32
    assert np.allclose(norms(key), [0.5, 0.25, 0.25, 1.0], atol=1e-5)
    assert np.linalg.norm(key.target.pose.position - CENTER) < 0.5e-3
    decoded, _ = target_slice.decode(key.vector[TARGET_SLICE])
    assert np.allclose(decoded, key.target.pose.position, atol=1e-5)
    assert key.target_age == key.scene_age == key.body_age == 0.0
    assert key.joints.names == JOINTS
    decision = key.decision
    assert decision.trigger_monotonic_ns == SECOND
    assert decision.stage_ns == (SECOND - MS, 0, 0, 0, 0)
    assert (decision.robot_id, decision.domain, decision.source_domain) == ("ur5e",) * 3
    assert (decision.encoder_id, decision.scene) == (SEGMENTATION_ID, "table")
    assert decision.frame_id == "base_link"


def test_same_situation_is_the_same_key_from_another_encoder():
    first, second = image_key(encoder(), look()), image_key(encoder(), look())
    assert np.array_equal(first.vector, second.vector)


def test_order_of_joint_names_does_not_matter():
    keys = []
    for order in itertools.islice(itertools.permutations(range(6)), 0, 720, 97):
        made = encoder()
        names = [JOINTS[i] for i in order]
        made.joints.update(names, POSE[list(order)], np.zeros(6), [], 0, 2 * SECOND)
        keys.append(made.on_body(2 * SECOND, origin(2 * SECOND)).vector)
    assert all(np.array_equal(keys[0], key) for key in keys)


def test_body_keys_hold_the_images_slices_with_their_age():
    made = encoder()
    first = image_key(made, look())
    later = SECOND + 30 * MS
    feed(made, later - 2 * MS, POSE + 0.1)
    key = made.on_body(later, origin(later - 2 * MS))
    assert key.trigger is Trigger.JOINT_STATE
    assert np.array_equal(key.vector[:40], first.vector[:40])
    assert not np.array_equal(key.vector[BODY_SLICE], first.vector[BODY_SLICE])
    assert key.target_age == key.scene_age == pytest.approx(0.030)
    assert key.body_age == pytest.approx(0.002)
    assert key.decision.sequence == first.decision.sequence + 1
    assert key.decision.trace_id == first.decision.trace_id + 1


def test_hidden_target_is_held_then_invalid():
    made = encoder()
    image_key(made, look())
    later = SECOND + 500 * MS
    key = image_key(made, hidden(), later)
    assert made.perception.sight is Sight.ABSENT
    assert np.linalg.norm(key.target.pose.position - CENTER) < 0.5e-3
    assert key.target_age == pytest.approx(0.5)
    assert key.scene_age == 0.0
    late = SECOND + 10 * SECOND + MS
    key = image_key(made, hidden(), late)
    assert key.target is None
    assert not key.vector[TARGET_SLICE].any()
    assert np.isfinite(key.vector).all()


def test_target_that_was_taken_away_is_dropped():
    made = encoder()
    image_key(made, look())
    empty = look(radius=0.0005)
    for frame in range(1, 4):
        key = image_key(made, empty, SECOND + 33 * frame * MS)
        assert (key.target is None) == (frame == 3)


def test_target_never_seen_is_none_and_finite():
    key = image_key(encoder(), hidden())
    assert key.target is None
    assert np.isfinite([key.target_age, key.scene_age, key.body_age]).all()
    key = encoder().on_body(SECOND, origin(SECOND))
    assert key.target is None
    assert np.isfinite([key.target_age, key.scene_age]).all()
    assert not key.vector[:40].any()


def test_image_without_depth_makes_no_key_and_refreshes_nothing():
    made = encoder()
    image_key(made, look())
    color, depth = look(CENTER + np.array([0.05, 0.0, 0.0]))
    assert image_key(made, (color, np.full_like(depth, np.nan)), SECOND + 33 * MS) is None
    assert made.perception.sight is Sight.NO_DEPTH
    key = made.on_body(SECOND + 40 * MS, origin(SECOND + 33 * MS))
    assert key.target_age == pytest.approx(0.040)


def test_depth_units_and_holes_give_the_same_key():
    color, depth = look(noise=3e-4)
    reference = image_key(encoder(), (color, depth)).vector[SUMMED_SLICE]
    millimeters = (np.round(depth * 1000) / 1000).astype(np.float32)
    holes = depth.copy()
    holes[np.random.default_rng(1).random(depth.shape) < 0.3] = np.nan
    for other in (millimeters, holes):
        key = image_key(encoder(), (color, other))
        assert float(reference @ key.vector[SUMMED_SLICE]) > 0.999
        assert np.linalg.norm(key.target.pose.position - CENTER) < 1e-3


def test_channel_order_gives_the_same_key():
    color, depth = look()
    swapped = np.ascontiguousarray(color[..., ::-1])
    decoded = decode_color(swapped.tobytes(), "bgr8", 240, 320, 960)
    first, second = image_key(encoder(), (color, depth)), image_key(encoder(), (decoded, depth))
    assert np.array_equal(first.vector, second.vector)


def test_missing_joints_are_named_and_the_image_is_kept():
    made = KeyEncoder(EncoderConfig(), FakeRobot())
    made.set_camera(encoder()._camera.intrinsics)
    made.joints.update(JOINTS[:4], POSE[:4], [], [], 0, SECOND)
    with pytest.raises(MissingJointsError, match="wrist_2, wrist_3"):
        made.on_image(*look(), origin(SECOND), SECOND)
    made.joints.update(JOINTS[4:], POSE[4:], [], [], 0, SECOND + 5 * MS)
    key = made.on_body(SECOND + 5 * MS, origin(SECOND + 5 * MS))
    assert key.target is not None
    assert key.body_age == pytest.approx(0.005)


def test_frozen_joint_states_end_the_keys():
    made = encoder()
    with pytest.raises(MissingJointsError):
        made.on_body(SECOND + 101 * MS, origin(SECOND))


def test_no_calibration_is_named():
    made = KeyEncoder(EncoderConfig(), FakeRobot())
    feed(made, SECOND)
    assert not made.has_camera
    with pytest.raises(ImageError, match="camera info"):
        made.on_image(*look(), origin(SECOND), SECOND)


def test_required_joints():
    made = encoder(required_joints=("lift", "pan"))
    assert made.joints.names == ("pan", "lift")  # the model's order
    assert made.on_body(SECOND, origin(SECOND)).joints.names == ("pan", "lift")
    with pytest.raises(InputError, match=r"required_joints must be among .* got \['knee'\]"):
        encoder(required_joints=("knee",))


def test_unmeasured_velocity_is_masked_and_no_nan_leaves():
    made = encoder()
    for step in range(2):
        now = SECOND + 10 * step * MS
        made.joints.update(
            JOINTS, POSE + 0.01 * step, np.full(6, np.nan), np.full(6, np.nan), 0, now
        )
    key = made.on_body(now, origin(now))
    assert key.masked_inputs & 1
    assert np.isfinite(key.vector).all()
    assert np.allclose(key.joints.velocity, 1.0)


def test_imu_without_orientation_still_counts():
    made = encoder()
    made.inputs.on_imu(imu(SECOND, orientation=np.full(4, np.nan)))
    made.inputs.on_drives(drives(SECOND, np.full(6, 0.1)))
    key = made.on_body(SECOND, origin(SECOND))
    assert key.masked_inputs == 4 + 8  # odometry and orientation


def test_odometry_jump_drops_the_target_and_nan_is_masked_once():
    made = encoder()
    image_key(made, look())

    def odometry(x, at):
        return made.on_odometry(OdometrySample(x, 0.0, 0.0, 0.0, 0.0, SECOND + at * MS))

    assert odometry(0.0, 1) is OdometryEvent.TAKEN
    assert odometry(np.nan, 11) is OdometryEvent.INVALID
    assert odometry(0.1, 21) is OdometryEvent.TAKEN
    key = made.on_body(SECOND + 21 * MS, origin(SECOND))
    assert not key.masked_inputs & 4
    assert key.target is not None
    assert odometry(5.1, 31) is OdometryEvent.JUMP
    key = made.on_body(SECOND + 31 * MS, origin(SECOND))
    assert key.masked_inputs & 4
    assert key.target is None
    assert odometry(5.15, 41) is OdometryEvent.TAKEN
    assert not made.on_body(SECOND + 41 * MS, origin(SECOND)).masked_inputs & 4
    assert image_key(made, look(), SECOND + 50 * MS).target is not None


def test_task_and_epoch_travel_with_the_keys():
    made = encoder()
    state = TaskState(
        decision=Decision(intent_id="touch", decision_id=7, epoch=3),
        status=TaskStatus.RUNNING,
        task="touch_target",
        goal_id="g",
        stage="approach",
        stage_index=0,
        stage_count=3,
        subtask="touch_approach_v1",
        phase=0.0,
        intent=np.zeros(128, np.float32),
        decision_reason=DecisionReason.STAGE_ENTRY,
        needs_target=True,
        needs_image=True,
        requested_monotonic_ns=SECOND,
        allowed_contact="",
    )
    made.on_task(state)
    decision = made.on_body(SECOND, origin(SECOND)).decision
    assert (decision.intent_id, decision.decision_id, decision.epoch) == ("touch", 7, 3)
    assert (decision.domain, decision.scene) == (EncoderConfig().identity, EncoderConfig().scene)
    made.on_epoch(4)
    assert made.on_body(SECOND, origin(SECOND)).decision.epoch == 4 == made.epoch
    elsewhere = replace(state, decision=replace(state.decision, domain="line-2", scene="corridor"))
    made.on_task(elsewhere)
    decision = made.on_body(SECOND, origin(SECOND)).decision
    assert (decision.domain, decision.source_domain) == ("line-2", "line-2")
    assert decision.scene == "corridor"
    made.on_scene("table 2")  # the task has named its scene
    assert made.on_body(SECOND, origin(SECOND)).decision.scene == "corridor"
    made.on_task(state)
    assert made.on_body(SECOND, origin(SECOND)).decision.scene == "table 2"
    with pytest.raises(InputError, match="scene must be 1 to 64 printable characters, got ''"):
        made.on_scene("")
    assert made.on_body(SECOND, origin(SECOND)).decision.scene == "table 2"
    made.on_task(state)  # an old state does not bring an old epoch back
    assert made.epoch == 4


def test_obstacles_carry_the_keys_decision():
    robot = FakeRobot()
    made = encoder(robot)
    color, depth = look()
    key = image_key(made, (color, depth))
    found = made.obstacles(depth, key)
    assert found.decision == key.decision
    assert len(found.radius) == 0


def test_target_beyond_the_slices_range_is_not_claimed():
    far = encoder(camera_position=(2.6, 0.0, 0.38))
    key = image_key(far, look())  # the same picture, seen from 1.8 m farther away
    assert key.target is None
    assert np.isfinite(key.vector).all()


def test_calibration_is_rebuilt_only_when_it_changes():
    made = encoder()
    before = made._camera
    made.set_camera(before.intrinsics)
    assert made._camera is before


def test_warm_up_runs_the_whole_path():
    key, obstacles = warm_up(EncoderConfig(), FakeRobot())
    assert key.target is not None
    assert key.masked_inputs == 0
    assert len(obstacles.radius) == 0
    away = EncoderConfig(camera_orientation=(0.0, 0.0, 0.0, 1.0))  # looks up: nothing to see
    assert warm_up(away, FakeRobot())[0].target is None
