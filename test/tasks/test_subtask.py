"""What a subtask may be called."""

from __future__ import annotations

import pytest

from kv_action_router.tasks.subtask import why_no_subtask


@pytest.mark.parametrize("name", ["door_handle_grip_v2", "a_v0", "tighten M3_v10", "拧紧_v1"])
def test_names_with_a_version(name: str) -> None:
    assert why_no_subtask(name) == ""


@pytest.mark.parametrize(
    "name",
    ["grip", "grip_v", "grip_v01", "grip_v-1", "grip_v1.5", "grip_v2 ", "gripv2", "_v1", "grip_v²"],
)
def test_names_without_one_are_told_what_is_missing(name: str) -> None:
    assert why_no_subtask(name) == (
        f"be a name with its version, as in touch_approach_v1, got {name!r}"
    )


@pytest.mark.parametrize("length", [0, 257, 100_000])
def test_lengths_out_of_bounds(length: int) -> None:
    assert why_no_subtask("x" * length) == f"have 1 to 256 characters, got {length}"
