"""Texts, to and from their bytes: a count with the closing zero, the bytes, the zero."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

# (data, offset) -> what stands there, and the offset behind it
Decoder = Callable[[bytes, int], tuple[Any, int]]


def text_decoder(order: str) -> Decoder:
    """Return the decoder of one text, in struct's byte order.

    It raises struct.error or IndexError where the data end, UnicodeDecodeError for what is no text.
    """
    size_of = struct.Struct(order + "I").unpack_from

    def decode(data: bytes, offset: int) -> tuple[str, int]:
        (size,) = size_of(data, offset)
        end = offset + 4 + size
        if end > len(data):
            raise IndexError
        return data[offset + 4 : end].rstrip(b"\0").decode(), end

    return decode


def texts_decoder(order: str, count: int) -> Decoder:
    """Return the decoder of ``count`` texts, or of a sequence of them where it is -1."""
    size_of = struct.Struct(order + "I").unpack_from
    decode_one = text_decoder(order)

    def decode(data: bytes, offset: int) -> tuple[tuple[str, ...], int]:
        size = count
        if size == -1:
            (size,) = size_of(data, offset)
            offset += 4
        texts = []
        for _ in range(size):
            text, offset = decode_one(data, offset + (-offset & 3))
            texts.append(text)
        return tuple(texts), offset

    return decode


def encode_text(text: str) -> bytes:
    """Return the bytes of a text."""
    data = text.encode()
    return struct.pack("<I", len(data) + 1) + data + b"\0"


def encode_array(texts: Sequence[str]) -> bytes:
    """Return the bytes of a fixed number of texts."""
    block = b""
    for text in texts:
        block += bytes(-len(block) & 3) + encode_text(text)
    return block


def encode_sequence(texts: Sequence[str]) -> bytes:
    """Return the bytes of a sequence of texts."""
    return struct.pack("<I", len(texts)) + encode_array(texts)
