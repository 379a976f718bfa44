"""Raw image bytes to arrays: every common encoding of ``sensor_msgs/Image``, without cv_bridge.

Reading is a view on the message's own bytes wherever the encoding allows it. Errors name the
encoding, the field, the limit and the value received.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from kv_action_router.errors import ImageError

ColorImage = npt.NDArray[np.uint8]  # (height, width, 3), red first
DepthImage = npt.NDArray[np.float32]  # (height, width) [m], NaN = not measured

MAXIMUM_SIDE = 16384  # [px]

# encoding -> (dtype, channels, conversion to 8-bit RGB; None = is RGB already)
_Conversion = Callable[[npt.NDArray[Any]], npt.NDArray[Any]] | None


def _cv(code: int) -> Callable[[npt.NDArray[Any]], npt.NDArray[Any]]:
    return lambda image: cv2.cvtColor(image, code)


_COLOR: dict[str, tuple[str, int, _Conversion]] = {
    "rgb8": ("u1", 3, None),
    "bgr8": ("u1", 3, _cv(cv2.COLOR_BGR2RGB)),
    "rgba8": ("u1", 4, _cv(cv2.COLOR_RGBA2RGB)),
    "bgra8": ("u1", 4, _cv(cv2.COLOR_BGRA2RGB)),
    "rgb16": ("u2", 3, None),
    "bgr16": ("u2", 3, _cv(cv2.COLOR_BGR2RGB)),
    "rgba16": ("u2", 4, _cv(cv2.COLOR_RGBA2RGB)),
    "bgra16": ("u2", 4, _cv(cv2.COLOR_BGRA2RGB)),
    "mono8": ("u1", 1, _cv(cv2.COLOR_GRAY2RGB)),
    "mono16": ("u2", 1, _cv(cv2.COLOR_GRAY2RGB)),
    "yuv422": ("u1", 2, _cv(cv2.COLOR_YUV2RGB_UYVY)),
    "uyvy": ("u1", 2, _cv(cv2.COLOR_YUV2RGB_UYVY)),
    "yuv422_yuy2": ("u1", 2, _cv(cv2.COLOR_YUV2RGB_YUY2)),
    "yuyv": ("u1", 2, _cv(cv2.COLOR_YUV2RGB_YUY2)),
}
# ROS names a pattern by its first two rows, OpenCV's classic constants by the second row's middle
for _name, _code in (
    ("rggb", cv2.COLOR_BayerBG2RGB),
    ("bggr", cv2.COLOR_BayerRG2RGB),
    ("gbrg", cv2.COLOR_BayerGR2RGB),
    ("grbg", cv2.COLOR_BayerGB2RGB),
):
    _COLOR[f"bayer_{_name}8"] = ("u1", 1, _cv(_code))
    _COLOR[f"bayer_{_name}16"] = ("u2", 1, _cv(_code))

_DEPTH: dict[str, tuple[str, float]] = {  # encoding -> (dtype, meters a unit)
    "32FC1": ("f4", 1.0),
    "64FC1": ("f8", 1.0),
    "16UC1": ("u2", 0.001),
    "mono16": ("u2", 0.001),
}

COLOR_ENCODINGS = tuple(_COLOR)
DEPTH_ENCODINGS = tuple(_DEPTH)


def decode_color(
    data: Any,
    encoding: str,
    height: int,
    width: int,
    step: int,
    big_endian: bool = False,
) -> ColorImage:
    """Return the image as 8-bit RGB (height, width, 3), C order; a view for unpadded ``rgb8``.

    Args:
        data: the message's bytes (anything with a buffer).
        encoding: name as in ``sensor_msgs/image_encodings``.
        height: rows [px].
        width: columns [px].
        step: bytes a row, padding included.
        big_endian: byte order of 16-bit channels.

    Raises:
        ImageError: unknown encoding, impossible size, or too few bytes.
    """
    if encoding not in _COLOR:
        raise ImageError(
            f"color image: encoding must be one of {', '.join(COLOR_ENCODINGS)}, got {encoding!r}"
        )
    dtype, channels, convert = _COLOR[encoding]
    image = _view("color", data, encoding, dtype, channels, height, width, step, big_endian)
    if dtype == "u2":
        image = (image >> 8).astype(np.uint8)
    if convert is not None:
        if width % 2 and channels == 2:
            raise ImageError(f"color image: width of {encoding} must be even, got {width}")
        if encoding.startswith("bayer") and min(width, height) < 4:
            raise ImageError(
                f"color image: {encoding} must be at least 4x4 px, got {width}x{height}"
            )
        image = convert(np.ascontiguousarray(image))
    return np.ascontiguousarray(image)


def decode_depth(
    data: Any,
    encoding: str,
    height: int,
    width: int,
    step: int,
    big_endian: bool = False,
) -> DepthImage:
    """Return depth [m] (height, width), NaN where nothing was measured (0, Inf, NaN, negative).

    A ``32FC1`` image in this machine's byte order stays a view: its zeros and infinities are left
    in place, and :func:`valid_depth` says what counts.

    Raises:
        ImageError: unknown encoding, impossible size, or too few bytes.
    """
    if encoding not in _DEPTH:
        raise ImageError(
            f"depth image: encoding must be one of {', '.join(DEPTH_ENCODINGS)}, got {encoding!r}"
        )
    dtype, scale = _DEPTH[encoding]
    image = _view("depth", data, encoding, dtype, 1, height, width, step, big_endian)
    if dtype == "u2":
        meters = image.astype(np.float32)
        meters *= np.float32(scale)
        meters[image == 0] = np.nan
        return meters
    if image.dtype == np.float32 and image.dtype.isnative:
        return image
    return image.astype(np.float32)


def valid_depth(depth: DepthImage, minimum: float, maximum: float) -> npt.NDArray[np.bool_]:
    """Return where a depth [m] lies inside both limits; NaN and Inf never do."""
    return (depth >= minimum) & (depth <= maximum)


def _view(
    kind: str,
    data: Any,
    encoding: str,
    dtype: str,
    channels: int,
    height: int,
    width: int,
    step: int,
    big_endian: bool,
) -> npt.NDArray[Any]:
    for name, value in (("height", height), ("width", width)):
        if not 0 < value <= MAXIMUM_SIDE:
            raise ImageError(f"{kind} image: {name} must be 1 to {MAXIMUM_SIDE} px, got {value}")
    item = np.dtype(dtype).newbyteorder(">" if big_endian else "<")
    if item.itemsize > 1 and big_endian == (sys.byteorder == "big"):
        item = item.newbyteorder("=")
    row = width * channels * item.itemsize
    if step < row:
        raise ImageError(
            f"{kind} image: step of {encoding} with width {width} must be at least {row} bytes, "
            f"got {step}"
        )
    size = memoryview(data).nbytes
    needed = step * (height - 1) + row
    if size < needed:
        raise ImageError(
            f"{kind} image: {encoding} {width}x{height} with step {step} needs {needed} bytes, "
            f"got {size}"
        )
    strides: tuple[int, ...] = (step, channels * item.itemsize)
    shape: tuple[int, ...] = (height, width)
    if channels > 1:
        strides, shape = (*strides, item.itemsize), (*shape, channels)
    flat = np.frombuffer(data, dtype=np.uint8)
    return np.ndarray(shape, dtype=item, buffer=flat, strides=strides)
