"""Segments of the living stay, those of the dead go."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from kv_action_router.ros.shared_memory import opened_here, remove_orphans, segments


def make_segment(folder: Path, name: str) -> Path:
    for file in (name, f"sem.{name}_mutex", f"{name}_el"):
        (folder / file).touch()
    return folder / f"{name}_el"


def test_only_new_segments_without_an_owner_go(tmp_path: Path):
    make_segment(tmp_path, "fastdds_old")
    before = segments(tmp_path)
    make_segment(tmp_path, "fastdds_dead")
    make_segment(tmp_path, "fastrtps_dead")
    (tmp_path / "another_program_el").touch()
    owner = os.open(make_segment(tmp_path, "fastdds_living"), os.O_RDONLY)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX)
        remove_orphans(before, tmp_path)
    finally:
        os.close(owner)
    assert segments(tmp_path) == {"fastdds_old_el", "fastdds_living_el"}
    left = {file.name for file in tmp_path.iterdir()}
    assert not any("dead" in name for name in left)
    assert {"fastdds_old", "sem.fastdds_living_mutex", "another_program_el"} <= left


def test_a_machine_without_shared_memory_has_no_segments(tmp_path: Path):
    assert segments(tmp_path / "none") == set()


def test_what_this_process_has_open_is_its_own(tmp_path: Path):
    mine, other = tmp_path / "fastdds_mine_el", tmp_path / "fastdds_other_el"
    for file in (mine, other):
        file.touch()
    with mine.open():
        assert opened_here({mine.name, other.name}) == {mine.name}
    assert opened_here({mine.name, other.name}) == set()
