"""Weights of an ONNX file, read from its bytes: no code in the file is run, no library asked.

Only what a checkpoint needs of the wire format of protocol buffers: a model (field 7) holds a
graph, a graph (field 5) its initializers, and those hold dims (1), type (2), name (8) and raw data
(9), as https://github.com/onnx/onnx/blob/main/onnx/onnx.proto says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from kv_action_router.contracts import Float32Array
from kv_action_router.errors import CheckpointError

_GRAPH, _INITIALIZER = 7, 5
_DIMS, _TYPE, _NAME, _RAW = 1, 2, 8, 9
_FLOAT = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_Field = tuple[int, int | bytes]


def read_tensors(data: bytes, source: str) -> dict[str, Float32Array]:
    """Return name -> weights of all initializers.

    Args:
        data: of the ONNX file.
        source: named in errors.

    Raises:
        CheckpointError: truncated, no model, or an initializer that is no float32 with raw data of
            its own size.
    """
    tensors: dict[str, Float32Array] = {}
    try:
        for number, graph in _fields(data):
            if number != _GRAPH or not isinstance(graph, bytes):
                continue
            for inner, tensor in _fields(graph):
                if inner == _INITIALIZER and isinstance(tensor, bytes):
                    name, values = _tensor(tensor, source)
                    tensors[name] = values
    except IndexError as error:
        raise CheckpointError(source, "a complete ONNX file", f"{len(data)} bytes") from error
    if not tensors:
        raise CheckpointError(source, "an ONNX file with weights", f"{len(data)} bytes without")
    return tensors


def _tensor(data: bytes, source: str) -> tuple[str, Float32Array]:
    dims: list[int] = []
    kind, name, raw = 0, "", b""
    for number, value in _fields(data):
        if number == _DIMS:
            dims += list(_varints(value)) if isinstance(value, bytes) else [value]
        elif number == _TYPE and isinstance(value, int):
            kind = value
        elif number == _NAME and isinstance(value, bytes):
            name = value.decode("utf-8", "replace")
        elif number == _RAW and isinstance(value, bytes):
            raw = value
    if kind != _FLOAT:
        raise CheckpointError(f"{source}: {name}", "float32", f"type {kind}")
    if len(raw) != 4 * math.prod(dims):
        raise CheckpointError(f"{source}: {name}", f"{dims} of float32", f"{len(raw)} bytes")
    return name, np.frombuffer(raw, "<f4").astype(np.float32).reshape(dims)


def _fields(data: bytes) -> Iterator[_Field]:
    """Yield number and value of each field; raises IndexError where the data ends too early."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if kind == _BYTES:
            size, at = _varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise IndexError(kind)
        if at + size > len(data):
            raise IndexError(at)
        yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError(at)


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value
