"""Joint states in parts and in any order become one sample, or an error that names the joints."""

import itertools

import numpy as np
import pytest
from encoding_builders import MS, SECOND

from kv_action_router.encoding.joints import JointMerger
from kv_action_router.errors import InputError, MissingJointsError

NAMES = ("a", "b", "c")
VALUES = {"a": 0.1, "b": 0.2, "c": 0.3}


def merger(timeout=0.1):
    return JointMerger(NAMES, timeout)


def update(made, names, now=SECOND, velocity=(), effort=()):
    return made.update(names, [VALUES[n] for n in names], velocity, effort, now, now)


@pytest.mark.parametrize("order", list(itertools.permutations(NAMES)))
def test_order_of_names_does_not_matter(order):
    made = merger()
    update(made, order, velocity=[10 * VALUES[n] for n in order])
    assert not made.velocity_estimated
    sample = made.sample(SECOND)
    assert sample.names == NAMES
    assert sample.position.tolist() == [0.1, 0.2, 0.3]
    assert sample.velocity.tolist() == [1.0, 2.0, 3.0]
    assert np.isnan(sample.effort).all()


def test_parts_are_merged_and_missing_ones_named():
    made = merger()
    with pytest.raises(MissingJointsError, match="a, b, c"):
        made.sample(SECOND)
    assert update(made, ("c", "a"), velocity=(0.0, 0.0))
    assert not made.velocity_estimated  # b was not seen, which is another matter
    with pytest.raises(MissingJointsError, match=r"for b$"):
        made.sample(SECOND)
    assert update(made, ("b",), SECOND + 20 * MS)
    sample = made.sample(SECOND + 30 * MS)
    assert sample.receipt_ns == SECOND + 20 * MS
    assert made.age(SECOND + 30 * MS) == pytest.approx(0.030)  # of the oldest part


def test_old_part_is_missing_again():
    made = merger(timeout=0.1)
    update(made, NAMES)
    update(made, ("a", "b"), SECOND + 90 * MS)
    assert made.missing(SECOND + 100 * MS) == ()
    assert made.missing(SECOND + 101 * MS) == ("c",)


def test_foreign_joints_and_messages_without_positions_are_ignored():
    made = merger()
    assert not made.update(("wheel",), [1.0], [], [], 1, SECOND)
    assert not made.update(NAMES, [], [1.0, 1.0, 1.0], [], 1, SECOND)
    assert made.missing(SECOND) == NAMES


def test_what_is_not_measured_is_estimated_or_nan():
    made = merger()
    made.update(NAMES, [0.1, 0.2, 0.3], [np.nan, 1.0, np.nan], [np.nan] * 3, 0, SECOND)
    assert made.velocity_measured.tolist() == [False, True, False]
    assert made.velocity_estimated
    made.update(NAMES, [0.11, 0.2, 0.29], [np.nan, 1.0, np.inf], [], 0, SECOND + 10 * MS)
    sample = made.sample(SECOND + 10 * MS)
    assert np.allclose(sample.velocity, [1.0, 1.0, -1.0])
    assert np.isnan(sample.effort).all()


def test_velocity_after_a_gap_is_not_a_difference():
    made = merger()
    update(made, NAMES)
    made.update(NAMES, [9.0, 9.0, 9.0], [], [], 0, SECOND + 80 * MS)
    assert made.sample(SECOND + 80 * MS).velocity.tolist() == [0.0, 0.0, 0.0]
    made.update(NAMES, [9.1, 9.0, 9.0], [], [], 0, SECOND + 80 * MS)  # no time has passed
    assert np.isfinite(made.sample(SECOND + 80 * MS).velocity).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_position_that_is_not_finite_refuses_the_message(bad):
    made = merger()
    update(made, NAMES)
    with pytest.raises(InputError, match="position of b must be finite"):
        made.update(NAMES, [7.0, bad, 7.0], [], [], 0, SECOND + MS)
    assert made.sample(SECOND + MS).position.tolist() == [0.1, 0.2, 0.3]
    update(made, NAMES, SECOND + 2 * MS)  # the next good one is taken
    assert made.sample(SECOND + 2 * MS).receipt_ns == SECOND + 2 * MS


def test_bad_position_of_a_foreign_joint_is_nobodys_business():
    made = merger()
    assert made.update((*NAMES, "wheel"), [1.0, 2.0, 3.0, np.nan], [], [], 0, SECOND)


@pytest.mark.parametrize(
    ("names", "position", "velocity", "match"),
    [
        (("a", "a"), [1.0, 2.0], [], "repetition of a"),
        (("a", "b"), [1.0], [], "size of position must be 2"),
        (("a", "b"), [1.0, 2.0], [1.0, 2.0, 3.0], "size of velocity must be 2"),
    ],
)
def test_malformed_message_is_refused(names, position, velocity, match):
    with pytest.raises(InputError, match=match):
        merger().update(names, position, velocity, [], 0, SECOND)


def test_required_joints_must_be_distinct():
    for names in ((), ("a", "a")):
        with pytest.raises(InputError, match="required joints"):
            JointMerger(names, 0.1)


def test_sample_is_a_copy():
    made = merger()
    update(made, NAMES)
    sample = made.sample(SECOND)
    made.update(NAMES, [9.0, 9.0, 9.0], [], [], 0, SECOND + MS)
    assert sample.position.tolist() == [0.1, 0.2, 0.3]


def test_arrays_of_the_caller_are_not_kept():
    made = merger()
    values = np.array([0.1, 0.2, 0.3])
    made.update(NAMES, values, values, values, 0, SECOND)
    values[:] = 9.0
    sample = made.sample(SECOND)
    for part in (sample.position, sample.velocity, sample.effort):
        assert part.tolist() == [0.1, 0.2, 0.3]
    kept = [0.4, 0.5, 0.6]
    made.update(NAMES, kept, [], [], 0, SECOND + MS)
    kept[0] = 9.0
    assert made.sample(SECOND + MS).position.tolist() == [0.4, 0.5, 0.6]
