"""Many stored entries of one layout at once: read, and checked as an insertion is.

What is good beyond doubt is found for all rows together. Any other row goes to ``prepare_key`` and
``check_behavior`` one by one, which say what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kv_action_router.caching.domains import check_name
from kv_action_router.caching.key_index import prepare_key
from kv_action_router.caching.layers.behavior import BehaviorSize, check_behavior
from kv_action_router.caching.store.record import (
    KEY_BYTES,
    EntryRecord,
    Layout,
    Row,
)
from kv_action_router.contracts import SUMMED_SLICE, Float32Array, FloatArray
from kv_action_router.errors import EntryInvalidError, RouterError
from kv_action_router.tasks.subtask import why_no_subtask

NAME_LIMIT = 256
LARGEST_ID = 2**62
_UNIT = 1e-5  # how near to 1 the norm of a stored key is
_QUATERNION = 5e-4  # the same of a quaternion; check_behavior allows 1e-3

Bits = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Block:
    """Entries of one layout: ``counters`` int64 (r, 7) as in a row, keys (r, 64), values (r, v)."""

    layout: Layout
    counters: npt.NDArray[np.int64]
    keys: Float32Array
    values: FloatArray

    def __len__(self) -> int:
        return len(self.counters)

    def part(self, name: str) -> FloatArray:
        """Return phase, decay, target, knots or coefficients of all rows (r, size)."""
        return self.values[:, self.layout.parts[name]]

    def where(self, chosen: Bits) -> Block:
        """Return the rows that are chosen."""
        if chosen.all():
            return self
        return Block(self.layout, self.counters[chosen], self.keys[chosen], self.values[chosen])


def read_block(layout: Layout, rows: Sequence[Row]) -> Block:
    """Return rows, whose checksums are right, as arrays; all have the length of the layout."""
    numbers = np.frombuffer(b"".join([row[8] for row in rows]), dtype=np.uint8)
    numbers = numbers.reshape(len(rows), layout.size)
    return Block(
        layout,
        np.array([row[:7] for row in rows], dtype=np.int64),
        numbers[:, :KEY_BYTES].view("<f4").astype(np.float32, copy=False),
        numbers[:, KEY_BYTES:].view("<f8").astype(np.float64, copy=False),
    )


def check_layout(layout: Layout, size: BehaviorSize) -> None:
    """Refuse what no entry of this layout may have, whatever its numbers are.

    Raises:
        RouterError: naming the field, the limit and the value.
    """
    check_name("domain", layout.domain)
    if not 0 < len(layout.intent_id) <= NAME_LIMIT:
        raise EntryInvalidError(
            f"intent_id must have 1 to {NAME_LIMIT} characters, got {len(layout.intent_id)}"
        )
    if why := why_no_subtask(layout.subtask):
        raise EntryInvalidError(f"subtask must {why}")
    if layout.dimensions or layout.points or layout.degree or layout.has_target:
        check_behavior(layout.example(), size)


def sift(block: Block, rows: Sequence[Row], size: BehaviorSize) -> tuple[Block, dict[int, str]]:
    """Return the entries that an insertion would take, and why not for the others, by entry id.

    Args:
        block: of these rows; its layout was checked.
        rows: as they were read.
        size: room for one behavior.
    """
    good = plainly_good(block)
    refused: dict[int, str] = {}
    for index in np.flatnonzero(~good).tolist():
        reason = _refusal(rows[index], size)
        if reason:
            refused[rows[index][0]] = reason
        else:
            good[index] = True
    return block.where(good), refused


def plainly_good(block: Block) -> Bits:
    """Say of each row whether it is good beyond doubt (r,)."""
    entry_id, version, successes, failures, in_row, confident, last_used = block.counters.T
    good: Bits = np.ones(len(block), dtype=np.bool_)
    good &= (entry_id > 0) & (entry_id < LARGEST_ID) & (version > 0) & (version < 2**31)
    for counter in (successes, failures, in_row):
        good &= np.logical_and(counter >= 0, counter < 2**31)
    good &= ((confident == 0) | (confident == 1)) & (last_used >= 0) & (last_used < LARGEST_ID)
    with np.errstate(invalid="ignore", over="ignore"):
        wide = block.keys[:, SUMMED_SLICE].astype(np.float64)
        good &= np.abs(np.einsum("ij,ij->i", wide, wide) - 1.0) < _UNIT
        good &= np.isfinite(block.keys).all(axis=1)
        if block.layout.dimensions:
            good &= _motions_good(block)
    return good


def _motions_good(block: Block) -> Bits:
    degree = block.layout.degree
    phase, decay, knots = block.part("phase")[:, 0], block.part("decay"), block.part("knots")
    good: Bits = np.ones(len(block), dtype=np.bool_)
    good &= np.isfinite(block.values).all(axis=1)
    good &= np.logical_and(phase >= 0.0, phase <= 1.0)
    good &= ((decay >= 0.0) & (decay <= 1.0)).all(axis=1)
    good &= (np.diff(knots, axis=1) >= 0.0).all(axis=1)
    good &= knots[:, -1] > knots[:, 0]
    good &= (knots[:, 0] == knots[:, degree]) & (knots[:, -1] == knots[:, -1 - degree])
    inner = knots[:, degree + 1 : -degree - 1]
    if inner.shape[1] > degree:
        good &= (inner[:, degree:] != inner[:, :-degree]).all(axis=1)
    if block.layout.has_target:
        quaternion = block.part("target")[:, 3:]
        squares = np.einsum("ij,ij->i", quaternion, quaternion)
        good &= np.abs(squares - 1.0) < _QUATERNION
    return good


def _refusal(row: Row, size: BehaviorSize) -> str:
    """Return why an insertion would refuse a stored entry; empty = it would not."""
    limits = ((row[0], LARGEST_ID), (row[1], 2**31), *((n, 2**31) for n in row[2:5]))
    if min(row[:2]) < 1 or min(row[2:7]) < 0 or any(n >= limit for n, limit in limits):
        return f"counters must be positive and in range, got {list(row[:7])}"
    if row[5] > 1 or row[6] >= LARGEST_ID:
        return f"confident and last_used must be in range, got {row[5]}, {row[6]}"
    try:
        record = EntryRecord.of(row)
        key = prepare_key(record.key)
        if not np.allclose(key, record.key, atol=_UNIT):
            return "key must have unit norm in its summed part, as it is stored"
        if record.behavior is not None:
            check_behavior(record.behavior, size)
    except RouterError as error:
        return str(error)
    return ""
