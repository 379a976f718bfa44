"""The test of a whole motion: nothing that a dense test finds slips through."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import BSpline
from threadpoolctl import threadpool_limits

from kv_action_router.errors import InputError
from kv_action_router.robots.model import RobotModel
from kv_action_router.robots.swept import AllowedContact, SweptCollision, Touch
from kv_action_router.robots.workspace import joint_placements

threadpool_limits(1)

ROBOT = RobotModel.load()
COLLISION = ROBOT.collision_model(table_height=0.0)
SWEPT = SweptCollision(COLLISION)
PADDING = 0.02
DURATION = 1.5
TOOL = ("spindle", "tool")
NOTHING = np.zeros((0, 4))


def motion(seed: int, spread: float = 0.8) -> BSpline:
    """Return a clamped quintic with random coefficients around home, as cached motions are."""
    generator = np.random.default_rng(seed)
    points, degree = 28, 5
    ways = ROBOT.home + spread * np.cumsum(generator.normal(size=(4, ROBOT.n)), axis=0) / 2.0
    at = np.linspace(0.0, 3.0, points)
    rows = np.column_stack([np.interp(at, np.arange(4.0), way) for way in ways.T])
    inner = np.linspace(0.0, DURATION, points - degree + 1)
    knots = np.concatenate((np.zeros(degree), inner, np.full(degree, DURATION)))
    return BSpline(knots, np.clip(rows, ROBOT.lower, ROBOT.upper), degree)


def spheres(seed: int, count: int, radius: float) -> np.ndarray:
    """Return obstacles around the arm."""
    generator = np.random.default_rng(seed)
    center = generator.uniform([-0.4, -0.7, 0.05], [0.9, 0.7, 0.9], (count, 3))
    return np.column_stack((center, np.full(count, radius)))


def dense(path: BSpline, around: np.ndarray, padding: float) -> tuple[int, str] | None:
    """Test as many configurations as one likes to wait for."""
    return COLLISION.first_collision(path(np.linspace(0.0, DURATION, 600)), around, padding)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 24))
def test_what_passes_keeps_half_the_padding_from_obstacles(seed: int, count: int) -> None:
    path, around = motion(seed), spheres(seed, count, 0.01)
    touch = SWEPT.first_touch(path, DURATION, around, PADDING)
    if touch is not None:  # no false alarm either: at that instant the pair is too near
        there = COLLISION.in_collision(path(touch.time), around, PADDING + 1e-9)
        assert there is not None
        return
    near = dense(path, around, 0.5 * PADDING)
    if near is not None:
        assert "obstacle" not in near[1]
        assert "table" not in near[1]
    assert dense(path, around, 0.0) is None


@pytest.mark.parametrize("share", np.linspace(0.03, 0.97, 12))
def test_nothing_is_too_thin_to_be_found(share: float) -> None:
    """A grain in the way of the tip of a motion as fast as the joints can, wherever it hangs."""
    end = ROBOT.home + np.array([2.4, 0.3, -0.4, 0.5, 0.0, 0.0])
    way = np.vstack((ROBOT.home, end))

    def straight(times: np.ndarray) -> np.ndarray:
        return way[0] + np.multiply.outer(times / DURATION, way[1] - way[0])

    grain = np.array([[*ROBOT.forward(straight(np.array(share * DURATION)))[0], 1e-4]])
    touch = SWEPT.first_touch(straight, DURATION, grain, PADDING)
    assert touch is not None
    assert touch.pair.endswith("obstacle 0")
    assert touch.time == pytest.approx(share * DURATION, abs=0.1)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_no_point_is_farther_from_an_axis_than_the_extent(seed: int) -> None:
    q = np.random.default_rng(seed).uniform(-np.pi, np.pi, ROBOT.n)
    COLLISION.touched_at(q)
    placements = COLLISION.placements()
    ends = COLLISION.ends(placements[None])[0].reshape(-1, 3)
    for joint in placements:
        offset = ends - joint[3]
        along = offset @ joint[2]
        assert (np.linalg.norm(offset - np.outer(along, joint[2]), axis=1)).max() < (
            COLLISION.extent
        )


def test_first_of_several_is_named() -> None:
    way = np.vstack((ROBOT.home, ROBOT.home + np.array([1.5, 0.0, 0.0, 0.0, 0.0, 0.0])))

    def turning(times: np.ndarray) -> np.ndarray:
        return way[0] + np.multiply.outer(times / DURATION, way[1] - way[0])

    tips = [ROBOT.forward(turning(np.array(at * DURATION)))[0] for at in (0.8, 0.3, 0.5)]
    around = np.column_stack((tips, np.full(3, 0.005)))
    touch = SWEPT.first_touch(turning, DURATION, around, PADDING)
    assert touch is not None
    assert touch.pair == "spindle - obstacle 1"
    assert str(Touch(0.431, "forearm - obstacle 12")) == "forearm - obstacle 12 at 0.43 s"


class TestContact:
    """What a stage may touch."""

    end = ROBOT.solve_ik(np.array([0.5, 0.1, 0.002]))
    place = np.array([0.5, 0.1, 0.01])

    def touch(self, contact: AllowedContact, around: np.ndarray = NOTHING) -> Touch | None:
        """Test a descent to the table."""
        above = ROBOT.solve_ik(np.array([0.5, 0.1, 0.1]), None, self.end)
        way = np.vstack((above, self.end))
        return SWEPT.first_touch(
            lambda times: way[0] + np.multiply.outer(times, way[1] - way[0]), 1.0, around,
            PADDING, contact,
        )  # fmt: skip

    def test_table_only_by_the_links_of_the_contact(self) -> None:
        refused = self.touch(AllowedContact())
        assert refused is not None
        assert refused.pair == "spindle - table"
        assert self.touch(AllowedContact(TOOL, self.place, 0.06)) is None

    def test_obstacles_at_the_place_only(self) -> None:
        contact = AllowedContact(TOOL, self.place, 0.06)
        own = np.array([[0.51, 0.1, 0.02, 0.015]])
        beside = np.array([[0.5, 0.17, 0.02, 0.06]])
        assert self.touch(contact, own) is None
        touch = self.touch(contact, beside)
        assert touch is not None
        assert touch.pair in ("spindle - obstacle 0", "tool - obstacle 0")
        assert self.touch(AllowedContact(TOOL, None), beside) is None  # where is not known

    def test_another_link_at_the_place_is_refused(self) -> None:
        wrist = np.array([[*self.place + np.array([0.0, 0.0, 0.03]), 0.2]])
        touch = self.touch(AllowedContact(TOOL, self.place, 0.06), wrist)
        assert touch is not None
        assert touch.pair.split(" - ")[0] not in TOOL


def test_a_motion_that_stands_is_tested_where_it_stands() -> None:
    tip = ROBOT.forward(ROBOT.home)[0]
    hold = np.tile(ROBOT.home, (2, 1))
    around = np.array([[*tip, 0.01]])
    standing = SWEPT.first_touch(
        lambda times: np.tile(hold[0], (len(times), 1)), 1.0, around, PADDING
    )
    assert standing is not None
    assert standing.time == 0.0


def test_an_arm_that_stands_too_near_may_leave_and_not_come_nearer() -> None:
    x, y, z = ROBOT.forward(ROBOT.home)[0]
    lifted, lowered = (ROBOT.solve_ik(np.array([x, y, z + up])) for up in (0.1, -0.1))

    def touch(end: np.ndarray, gap: float) -> Touch | None:
        below = np.array([[x, y, z - gap - 0.01, 0.01]])
        return SWEPT.first_touch(
            lambda times: ROBOT.home + np.multiply.outer(times, end - ROBOT.home), 1.0, below,
            PADDING,
        )  # fmt: skip

    assert touch(lifted, 0.6 * PADDING) is None
    too_near = touch(lifted, 0.4 * PADDING)
    assert too_near is not None
    assert too_near.time == 0.0
    nearer = touch(lowered, 0.6 * PADDING)
    assert nearer is not None
    assert nearer.time > 0.0


def test_standing_is_tested_with_all_of_the_padding() -> None:
    x, y, z = ROBOT.forward(ROBOT.home)[0]
    below = np.array([[x, y, z - 0.6 * PADDING - 0.01, 0.01]])
    assert SWEPT.touch_at(ROBOT.home, below, PADDING) == "spindle - obstacle 0"
    assert SWEPT.touch_at(ROBOT.home, below, 0.5 * PADDING) is None
    assert SWEPT.touch_at(ROBOT.home, below, PADDING, AllowedContact(TOOL)) is None


def test_placements_are_copies_of_what_pinocchio_says() -> None:
    data = COLLISION._data
    joints = np.arange(1, ROBOT.n + 1)
    read = joint_placements(data, joints)
    apart = joint_placements(data, joints[::2])  # not one block: gathered one by one
    COLLISION.touched_at(ROBOT.home + 0.3)
    first, some = read(), apart()
    for number, place in zip(joints, first, strict=True):
        assert np.array_equal(place[:3].T, data.oMi[int(number)].rotation)
        assert np.array_equal(place[3], data.oMi[int(number)].translation)
    assert np.array_equal(some, first[::2])
    COLLISION.touched_at(ROBOT.home)
    assert not np.array_equal(read(), first)


def test_bad_input_is_named() -> None:
    path = motion(1)
    with pytest.raises(InputError, match="position"):
        SWEPT.first_touch(lambda times: np.full((len(times), 6), np.nan), 1.0, NOTHING, PADDING)
    with pytest.raises(InputError, match="padding"):
        SWEPT.first_touch(path, DURATION, NOTHING, -0.1)
    with pytest.raises(InputError, match="spheres"):
        SWEPT.first_touch(path, DURATION, np.full((1, 4), np.nan), PADDING)
    with pytest.raises(InputError, match="may_touch"):
        SWEPT.first_touch(path, DURATION, NOTHING, PADDING, AllowedContact(("hand",)))
