"""The benchmarks' programs on tiny counts: what they find, never how long it took."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

import bandwidth
import floor
import reaction
import replan
import startup

from harness import events, messages
from harness.end_to_end import POLICIES, EndToEnd
from harness.planners import Cell, Problem, Trajectory, problems, quintic
from harness.planners import replan as ours
from harness.store_file import load, write_entries
from kv_action_router.ros.system import INJECTOR, SIMULATION


@pytest.fixture(scope="module")
def cell() -> Cell:
    return Cell()


def test_stage_times_are_patched_into_messages_of_their_usual_size() -> None:
    for stamped in (messages.key(), messages.match(), messages.chunk()):
        data = stamped.write((1, 2, 3, 4, 5))
        assert stamped.read(data) == (1, 2, 3, 4, 5)
        assert len(data) == stamped.size
    assert len(messages.color()) > messages.HEIGHT * messages.WIDTH * 3
    assert len(messages.depth()) > messages.HEIGHT * messages.WIDTH * 4


@pytest.mark.parametrize("composed", [False, True])
def test_the_floor_stands_on_the_environment_of_the_nodes(tmp_path: Path, composed: bool) -> None:
    system = floor.system_of(10, tmp_path / "rows.npy", composed=composed)
    processes = {process.name: process for process in system.processes}
    assert len(processes) == (3 if composed else 5)
    assert processes["injector"].environment != processes["source"].environment
    command = processes["source"].command()
    assert command[-2:] == ["--frames", "10"]


@pytest.mark.dds
def test_images_reach_the_command_through_the_floor(ros_domain_id: int, tmp_path: Path) -> None:
    found = floor.measure(20, tmp_path, composed=False)
    assert len(found) >= 1
    assert (np.diff(found, axis=1) > 0).all()
    report = floor.figures(found, 20)
    assert report["total"]["n"] == len(found)
    assert report["arrived"] + report["lost"]["share"] == pytest.approx(1.0)


def test_planners_answer_the_same_problems_and_ours_is_clear_of_everything(cell: Cell) -> None:
    given = problems(cell, 4)
    assert not any(cell.touches(problem.start[None, :], problem.obstacles) for problem in given)
    for make in (ours, quintic):
        planner = make(cell)
        for problem in given:
            found = planner(problem)
            assert found.positions[0] == pytest.approx(problem.start, abs=1e-6)
            tip = cell.model.forward(found.positions[-1])[0]
            assert tip == pytest.approx(problem.target + np.array([0.0, 0.0, 0.06]), abs=2e-3)
            assert not replan.leaves_limits(cell, found)


def test_a_planner_that_fails_or_hurries_is_found_out(cell: Cell) -> None:
    given = problems(cell, 1) * (replan.WARM_UP + 3)

    def hurried(problem: Problem) -> Trajectory:
        steps = np.linspace(0.0, 1.0, 50)[:, None]
        return Trajectory(problem.start + steps * 2.0, 0.01)

    found = replan.measure(cell, hurried, given)
    assert found["outside_limits"] == found["ms"]["n"] == 3

    def helpless(_: Problem) -> Trajectory:
        from harness.planners import PlanningError

        raise PlanningError("nothing")

    found = replan.measure(cell, helpless, given)
    assert found["failures"] == {"PlanningError": 3}


def test_gains_are_over_a_hit_of_the_same_state() -> None:
    def phase(mean: float) -> dict[str, Any]:
        return {"total": {"mean": mean}}

    pipeline = {"hit_quiet": phase(4.0), "miss_quiet": phase(8.0), "hit_hog": phase(5.0)}
    policies = {"hog": {POLICIES[0]: {"ms": {"mean": 50.0}}}}
    found = bandwidth.gains(pipeline, policies)
    assert found["quiet"]["replan"] == pytest.approx(2.0)
    assert found["hog"]["replan"] is None
    assert found["hog"][POLICIES[0]] == pytest.approx(10.0)
    assert [phase.busy_memory for phase in bandwidth.phases(5)] == [0, 0, 1, 1]


def test_a_policy_that_cannot_be_run_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("harness.end_to_end.interpreter_of_comparisons", lambda: tmp_path / "none")
    policies = EndToEnd(1)
    policies.measure()
    found = policies.figures()
    assert sorted(found) == sorted(POLICIES)
    assert all("No such file" in policy["trouble"] for policy in found.values())


def test_a_store_with_many_entries_is_written_and_comes_back(tmp_path: Path) -> None:
    write_entries(tmp_path / "entries.sqlite3", 50)
    found = load(tmp_path / "entries.sqlite3", 50)
    assert found["entries"] == 50
    manager = next(p for p in startup.system_with(":memory:", 9).processes if "cache" in p.name)
    assert manager.parameters["capacity"] == 9


def test_the_reactor_stands_before_wrench_and_drives(tmp_path: Path) -> None:
    system = reaction.system_of(tmp_path / "reactions.json", 3)
    processes = {process.name: process for process in system.processes}
    assert set(processes[SIMULATION].remaps) == {"wrench", "drive_state"}
    assert INJECTOR in processes
    assert "--count" in processes["reactor"].command()


def test_reactions_come_back_as_they_were_written(tmp_path: Path) -> None:
    found = {kind: events.Reactions([1.0], 2) for kind in events.KINDS}
    events.write(tmp_path / "new" / "reactions.json", found)
    assert events.read(tmp_path / "new" / "reactions.json") == found
    assert events.read(tmp_path / "none.json") == {}
    assert json.loads((tmp_path / "new" / "reactions.json").read_text())
