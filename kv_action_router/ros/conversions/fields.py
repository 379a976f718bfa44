"""Conversions of single fields: whatever number comes in, the message gets what its field holds.

rclpy's C layer does not convert: an int or a NumPy scalar in a float field breaks the publisher, a
list in an array field costs milliseconds. So every scalar passes ``float``, ``int``, ``bool`` or
``str``, and arrays are written in place where the message already has the size.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from builtin_interfaces.msg import Time

from kv_action_router.contracts import Float32Array, FloatArray
from kv_action_router.errors import InputError

E = TypeVar("E", bound=IntEnum)


def fill_doubles(msg: Any, field: str, values: npt.ArrayLike) -> None:
    """Write values, row-major, into a ``float64[]`` field; in place when it has the size.

    Assigning would copy: without field checks the message's setter makes a new array each time.
    """
    _fill(msg, field, np.asarray(values, dtype=np.float64), "d")


def fill_floats(msg: Any, field: str, values: npt.ArrayLike) -> None:
    """Write values, row-major, into a ``float32[]`` field; in place when it has the size."""
    _fill(msg, field, np.asarray(values, dtype=np.float32), "f")


def _fill(msg: Any, field: str, source: npt.NDArray[Any], typecode: str) -> None:
    present = getattr(msg, field)
    if len(present) != source.size:
        setattr(msg, field, array(typecode, source.tobytes()))
    elif source.size:
        np.frombuffer(present, dtype=source.dtype).reshape(source.shape)[...] = source


def doubles_from_field(values: array[float]) -> FloatArray:
    """Return a copy as float64 (k,)."""
    return np.array(values, dtype=np.float64)


def floats_from_field(values: array[float]) -> Float32Array:
    """Return a copy as float32 (k,)."""
    return np.array(values, dtype=np.float32)


def bools_to_field(values: npt.ArrayLike) -> list[bool]:
    """Return a list of bool."""
    truths: list[bool] = np.asarray(values, dtype=np.bool_).tolist()
    return truths


def bools_from_field(values: Sequence[bool]) -> npt.NDArray[np.bool_]:
    """Return an array of bool (k,)."""
    return np.array(values, dtype=np.bool_)


def sized(values: npt.NDArray[Any], size: int, field: str) -> npt.NDArray[Any]:
    """Return ``values`` if they are ``size`` many.

    Raises:
        InputError: naming the field and both sizes.
    """
    if values.size != size:
        raise InputError(field, f"of size {size}", values.size)
    return values


def sized_or_nan(values: FloatArray, size: int, field: str) -> FloatArray:
    """Return ``values`` if they are ``size`` many, and NaN (size,) if there are none."""
    return np.full(size, np.nan) if values.size == 0 else sized(values, size, field)


def copy_vector(values: npt.ArrayLike, out: npt.NDArray[Any], field: str) -> None:
    """Write values into a message's array of fixed size.

    Raises:
        InputError: the size is not the field's.
    """
    source = np.asarray(values)
    if source.size != out.size:
        raise InputError(field, f"of size {out.size}", source.size)
    out[:] = source.reshape(-1)


def enum_from_field(kind: type[E], value: int, field: str) -> E:
    """Return the member of an enumeration.

    Raises:
        InputError: no member has this value; the message lists them.
    """
    try:
        return kind(value)
    except ValueError:
        members = ", ".join(f"{member.value} ({member.name})" for member in kind)
        raise InputError(field, f"one of {members}", value) from None


def stamp_to_msg(nanoseconds: int, stamp: Time) -> None:
    """Write a time [ns] into a header's stamp."""
    stamp.sec, stamp.nanosec = divmod(int(nanoseconds), 1_000_000_000)


def stamp_from_msg(stamp: Time) -> int:
    """Return a header's stamp [ns]."""
    return int(stamp.sec * 1_000_000_000 + stamp.nanosec)
