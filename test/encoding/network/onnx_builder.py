"""ONNX files with weights and no graph worth the name, written byte by byte."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def varint(value: int) -> bytes:
    """Return a number as protocol buffers write it."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, data: bytes) -> bytes:
    """Return a field that holds bytes."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name: str, shape: tuple[int, ...], raw: bytes, kind: int = 1) -> bytes:
    """Return a TensorProto."""
    dims = b"".join(varint(1 << 3) + varint(size) for size in shape)
    return dims + varint(2 << 3) + varint(kind) + field(8, name.encode()) + field(9, raw)


def model(weights: Mapping[str, np.ndarray], *more: bytes) -> bytes:
    """Return a ModelProto whose graph has these weights, and what is given as it is."""
    tensors = [
        tensor(name, values.shape, values.astype("<f4").tobytes())
        for name, values in weights.items()
    ]
    graph = b"".join(field(5, each) for each in (*tensors, *more))
    return varint(1 << 3) + varint(8) + field(7, graph)
