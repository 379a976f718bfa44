"""How a face leans: exact without noise, level without points, and as uncertain as it says."""

import math

import numpy as np
import pytest

from kv_action_router.encoding.camera import rotation_from_quaternion
from kv_action_router.encoding.face_axis import EXPECTED, axis, fit_slopes, orientation

RADIUS, HEIGHT = 0.02, -0.37  # [m] of a face, and its height seen from the camera
AWAY = (0.32, -0.05)  # [m] from the camera along x and y


def seen(a, b, count=300, noise=0.0, seed=1):
    """Return the slopes of a face that a camera sees: its rays cut with the level plane."""
    generator = np.random.default_rng(seed)
    around = RADIUS * np.sqrt(generator.uniform(0, 1, count))
    turn = generator.uniform(0, 2 * math.pi, count)
    true = np.column_stack((around * np.cos(turn), around * np.sin(turn)))
    heights = true @ np.array((a, b))
    level = (true + AWAY) * (HEIGHT / (HEIGHT + heights))[:, None]
    heights = heights + noise * generator.standard_normal(count)
    x, y = (level - level.mean(axis=0)).T
    h = heights - heights.mean()
    return fit_slopes(
        (x @ x, x @ y, y @ y), (x @ h, y @ h), h.var(), count,
        (AWAY[0] / HEIGHT, AWAY[1] / HEIGHT),
    )  # fmt: skip


@pytest.mark.parametrize(("a", "b"), [(0.0, 0.0), (0.05, 0.0), (-0.05, 0.0), (0.02, 0.06)])
def test_slopes_of_an_exact_face(a, b):
    found = seen(a, b)
    assert (found.x, found.y) == pytest.approx((a, b), abs=3e-3)
    assert found.tilt == pytest.approx(math.atan(math.hypot(a, b)), abs=3e-3)


def test_uncertainty_is_that_of_many_tries():
    tries = [seen(0.03, -0.02, noise=1e-3, seed=seed) for seed in range(200)]
    off = np.array([(found.x - 0.03, found.y + 0.02) for found in tries])
    told = np.sqrt(np.array([found.covariance for found in tries])[:, [0, 2]].mean(axis=0))
    spread = off.std(axis=0)
    assert (spread < told).all()  # told with room for what neighbors have in common
    assert (told < 3.0 * spread).all()


def test_what_is_not_known_stays_as_expected():
    found = fit_slopes((0.0, 0.0, 0.0), (0.0, 0.0), 0.0, 1, (0.0, 0.0))
    assert (found.x, found.y) == (0.0, 0.0)
    assert found.covariance == pytest.approx((EXPECTED**2, 0.0, EXPECTED**2))
    on_a_line = fit_slopes((1e-2, 0.0, 0.0), (5e-4, 0.0), 2.5e-7, 100, (0.0, 0.0))
    assert on_a_line.x == pytest.approx(0.05, rel=0.03)
    assert on_a_line.covariance[2] == pytest.approx(EXPECTED**2)


@pytest.mark.parametrize("yaw", [0.0, 1.1, -2.9])
def test_orientation_carries_the_axis_up(yaw):
    turned = orientation(0.1, -0.2, yaw)
    assert np.linalg.norm(turned) == pytest.approx(1.0)
    up = np.array([-0.1, 0.2, 1.0]) / math.sqrt(1.05)
    assert axis(turned) == pytest.approx(up)
    assert rotation_from_quaternion(turned)[:, 2] == pytest.approx(up)
    assert rotation_from_quaternion(orientation(0.0, 0.0, yaw))[0, 0] == pytest.approx(
        math.cos(yaw)
    )


def test_covariance_is_about_the_axes_of_rotation():
    slopes = seen(0.0, 0.0, noise=1e-3)
    covariance = np.zeros((6, 6))
    slopes.write(covariance)
    xx, xy, yy = slopes.covariance
    assert covariance[3, 3] == yy  # roll lets the face rise along y
    assert covariance[4, 4] == xx
    assert covariance[3, 4] == covariance[4, 3] == -xy
