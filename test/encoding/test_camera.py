"""Calibration: what is impossible is refused, and a projected point comes back."""

import numpy as np
import pytest
from encoding_builders import CAMERA, INTRINSICS

from kv_action_router.encoding.camera import Camera, Intrinsics
from kv_action_router.errors import ImageError


def test_all_zero_matrix_is_refused_without_division():
    with pytest.raises(ImageError, match="fx must be finite and positive, got 0"):
        Intrinsics.from_matrix(320, 240, [0.0] * 9)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_impossible_focal_length_is_refused(value):
    with pytest.raises(ImageError, match="fy"):
        Intrinsics(320, 240, 300.0, value, 160.0, 120.0)


def test_matrix_of_wrong_size_is_refused():
    with pytest.raises(ImageError, match="9 numbers, got 4"):
        Intrinsics.from_matrix(320, 240, [1.0] * 4)


def test_size_of_another_calibration_is_refused():
    with pytest.raises(ImageError, match="depth image must be 320x240"):
        CAMERA.check_size((480, 640), "depth")


def test_ray_and_projection_are_inverse():
    for row, column in ((0, 0), (239, 319), (100, 200)):
        point = CAMERA.origin + 0.7 * CAMERA.rays[row, column].astype(float)
        assert np.allclose(CAMERA.project(point[None])[0], [column, row], atol=1e-3)
        assert CAMERA.depth_of(point) == pytest.approx(0.7, abs=1e-6)


def test_point_behind_the_camera_has_no_pixel():
    behind = CAMERA.origin - CAMERA.rotation[:, 2]
    assert np.isnan(CAMERA.project(behind[None])).all()


def test_distortion_bends_the_outer_rays_only():
    k = INTRINSICS
    bent = Intrinsics(k.width, k.height, k.fx, k.fy, k.cx, k.cy, (-0.2, 0.05, 0.0, 0.0, 0.0))
    camera = Camera(bent, CAMERA.origin, (1.0, 0.0, 0.0, 0.0))
    straight = Camera(k, CAMERA.origin, (1.0, 0.0, 0.0, 0.0))
    difference = np.linalg.norm(camera.rays - straight.rays, axis=-1)
    assert difference[119, 159] < 1e-4
    assert difference[0, 0] > 0.01
    # a distorted pixel of the undistorted ray: the model itself, forward
    x, y = camera.rays[10, 20, 0], -camera.rays[10, 20, 1]
    r2 = x * x + y * y
    column = k.fx * x * (1 - 0.2 * r2 + 0.05 * r2 * r2) + k.cx
    assert column == pytest.approx(20.0, abs=0.01)
    assert y == pytest.approx(y)
