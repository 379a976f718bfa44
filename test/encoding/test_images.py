"""Every encoding gives the same picture, or one error that names what is wrong."""

import numpy as np
import pytest

from kv_action_router.encoding.images import decode_color, decode_depth
from kv_action_router.errors import ImageError

H, W = 8, 12


def picture():
    """Return a smooth colored picture (H, W, 3)."""
    rows, columns = np.mgrid[0:H, 0:W]
    return np.stack((20 * rows, 15 * columns, 10 * (rows + columns)), axis=-1).astype(np.uint8)


def padded(image, extra=5):
    """Return bytes and step of an image whose rows end in padding."""
    flat = image.reshape(H, -1).view(np.uint8)
    rows = np.full((H, flat.shape[1] + extra), 0xAA, dtype=np.uint8)
    rows[:, : flat.shape[1]] = flat
    return rows.tobytes(), rows.shape[1]


RGB = picture()
LOSSLESS = {
    "rgb8": RGB,
    "bgr8": RGB[..., ::-1],
    "rgba8": np.dstack((RGB, np.full((H, W), 7, np.uint8))),
    "bgra8": np.dstack((RGB[..., ::-1], np.full((H, W), 7, np.uint8))),
    "rgb16": RGB.astype(np.uint16) << 8,
    "bgr16": RGB[..., ::-1].astype(np.uint16) << 8,
}


@pytest.mark.parametrize("encoding", LOSSLESS)
def test_color_encodings_agree(encoding):
    data, step = padded(np.ascontiguousarray(LOSSLESS[encoding]))
    assert np.array_equal(decode_color(data, encoding, H, W, step), RGB)


def test_plain_rgb_is_a_view():
    data = bytearray(RGB.tobytes())
    image = decode_color(data, "rgb8", H, W, 3 * W)
    data[0] = 99
    assert image[0, 0, 0] == 99


def test_big_endian_is_honored():
    swapped = (RGB.astype(np.uint16) << 8).astype(">u2")
    image = decode_color(swapped.tobytes(), "rgb16", H, W, 6 * W, big_endian=True)
    assert np.array_equal(image, RGB)
    depth = np.array([[1000, 2000]], dtype=">u2")
    assert decode_depth(depth.tobytes(), "16UC1", 1, 2, 4, big_endian=True).tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("depth", [8, 16])
def test_mono_becomes_gray(depth):
    gray = RGB[..., 0].astype(np.uint16 if depth == 16 else np.uint8)
    data, step = padded(gray << 8 if depth == 16 else gray)
    image = decode_color(data, f"mono{depth}", H, W, step)
    assert all(np.array_equal(image[..., c], RGB[..., 0]) for c in range(3))


# first two rows of each pattern, as its name says; 0 = red, 1 = green, 2 = blue
PATTERNS = {"rggb": (0, 1, 1, 2), "bggr": (2, 1, 1, 0), "gbrg": (1, 2, 0, 1), "grbg": (1, 0, 2, 1)}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("bits", [8, 16])
def test_bayer_colors_are_where_the_name_says(pattern, bits):
    color = np.array([200, 90, 30], dtype=np.uint8)
    channel = np.array(PATTERNS[pattern]).reshape(2, 2)
    raw = color[np.tile(channel, (H // 2, W // 2))]
    raw = raw.astype(np.uint16) << 8 if bits == 16 else raw
    data, step = padded(np.ascontiguousarray(raw))
    image = decode_color(data, f"bayer_{pattern}{bits}", H, W, step)
    assert np.abs(image[2:-2, 2:-2].astype(int) - color).max() <= 2


@pytest.mark.parametrize("encoding", ["yuv422", "uyvy", "yuv422_yuy2", "yuyv"])
def test_yuv_is_close(encoding):
    color = np.full((H, W, 3), (200, 60, 120), np.uint8)
    luma = 0.299 * 200 + 0.587 * 60 + 0.114 * 120  # BT.601, studio range
    y = round(16 + luma * 219 / 255)
    u = round(128 + 0.564 * (120 - luma) * 224 / 255)
    v = round(128 + 0.713 * (200 - luma) * 224 / 255)
    pair = [u, y, v, y] if encoding in ("yuv422", "uyvy") else [y, u, y, v]
    data = np.tile(np.array(pair, np.uint8), (H, W // 2))
    image = decode_color(data.tobytes(), encoding, H, W, 2 * W)
    assert np.abs(image.astype(int) - color).max() <= 6


def test_millimeters_and_meters_agree_and_zero_is_nothing():
    meters = np.linspace(0.3, 2.0, H * W).reshape(H, W).astype(np.float32)
    millimeters = np.round(meters * 1000).astype(np.uint16)
    millimeters[0, 0] = 0
    data, step = padded(millimeters, extra=4)
    depth = decode_depth(data, "16UC1", H, W, step)
    assert np.isnan(depth[0, 0])
    assert np.nanmax(np.abs(depth - meters)) < 6e-4
    same = decode_depth(meters.tobytes(), "32FC1", H, W, 4 * W)
    assert np.array_equal(same, meters)
    double = decode_depth(meters.astype(np.float64).tobytes(), "64FC1", H, W, 8 * W)
    assert np.array_equal(double, meters)


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((b"", "", 2, 2, 6), "encoding must be one of .*bgr8.* got ''"),
        ((b"", "jpeg", 2, 2, 6), "got 'jpeg'"),
        ((bytes(12), "rgb8", 2, 2, 5), "step of rgb8 with width 2 must be at least 6 bytes, got 5"),
        ((bytes(11), "rgb8", 2, 2, 6), "needs 12 bytes, got 11"),
        ((bytes(12), "rgb8", 0, 2, 6), "height must be 1 to .* got 0"),
        ((bytes(12), "rgb8", 2, 10**9, 6), "width"),
        ((bytes(12), "yuv422", 2, 3, 6), "width of yuv422 must be even, got 3"),
        ((bytes(4), "bayer_rggb8", 2, 2, 2), "at least 4x4"),
    ],
)
def test_bad_color_image_is_named(arguments, names):
    with pytest.raises(ImageError, match=names):
        decode_color(*arguments)


def test_bad_depth_image_is_named():
    with pytest.raises(ImageError, match="one of 32FC1, 64FC1, 16UC1, mono16, got 'rgb8'"):
        decode_depth(bytes(12), "rgb8", 2, 2, 6)
    with pytest.raises(ImageError, match="needs 16 bytes, got 4"):
        decode_depth(bytes(4), "32FC1", 2, 2, 8)
