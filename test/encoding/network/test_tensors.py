"""Weights are read from an ONNX file's bytes; what is no such file is refused."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx_builder import model, tensor

from kv_action_router.encoding.network.tensors import read_tensors
from kv_action_router.errors import CheckpointError


def test_weights_come_back():
    weights = {"first.weight": np.arange(24.0).reshape(2, 3, 4), "first.bias": np.array([1.0, -2])}
    found = read_tensors(model(weights), "x")
    assert found.keys() == weights.keys()
    for name, values in weights.items():
        assert np.array_equal(found[name], values.astype(np.float32))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data):
    with contextlib.suppress(CheckpointError):
        assert read_tensors(data, "x")


def test_each_truncation_is_refused():
    whole = model({"weight": np.ones((3, 5))})
    for size in range(len(whole)):
        with pytest.raises(CheckpointError):
            read_tensors(whole[:size], "x")


def test_other_types_and_sizes_are_named():
    with pytest.raises(CheckpointError, match="half must be float32, got 'type 10'"):
        read_tensors(model({}, tensor("half", (2,), b"1234", kind=10)), "x")
    with pytest.raises(CheckpointError, match=r"small must be \[3\] of float32, got '8 bytes'"):
        read_tensors(model({}, tensor("small", (3,), b"12345678")), "x")
