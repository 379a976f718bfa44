"""Systems under the driver's stimulus: brought up, measured, ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import pipeline_figures, rows
from harness.domain import in_domain
from harness.phases import Phase, read_record, write_plan
from harness.programs import Program, environment_of, run_until_done
from harness.usage import Usage
from kv_action_router.errors import RouterError
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.supervisor import Supervisor
from kv_action_router.ros.system import CAMERA, PRIORITIES, SIMULATION, SYSTEMS, System

_START_S = 90.0  # of a system, and of its driver's pictures


def measure(plan: Sequence[Phase], folder: Path, arguments: Arguments) -> dict[str, Any]:
    """Run the phases of one system; return their figures.

    A system that dies ends the measurement: what it had measured is returned, and ``trouble`` says
    why there is no more.
    """
    return measure_several(plan, folder, [arguments])[0]


def measure_several(
    plan: Sequence[Phase], folder: Path, robots: Sequence[Arguments]
) -> list[dict[str, Any]]:
    """Run the same phases on several systems at a time; return the figures of each."""
    systems = [_driven(plan, _folder(folder, robot), robot) for robot in robots]
    trouble = ""
    with in_domain():
        supervisor = Supervisor(systems, folder / "logs")
        supervisor.start()
        usage = Usage(supervisor.pids)
        try:
            until = _START_S * len(robots) + sum(phase.timeout for phase in plan)
            drivers = [f"{robot.namespace}/driver".lstrip("/") for robot in robots]
            run_until_done(supervisor, drivers, until, usage.sample)
        except RouterError as error:
            trouble = str(error)
        finally:
            supervisor.stop()
    return [_figures(plan, _folder(folder, robot), robot, usage, trouble) for robot in robots]


def _folder(folder: Path, robot: Arguments) -> Path:
    return folder / robot.namespace if robot.namespace else folder


def _driven(plan: Sequence[Phase], folder: Path, robot: Arguments) -> System:
    """Return a system whose camera is a driver's; what an earlier run has left is removed."""
    system = SYSTEMS["ur5e"](robot).with_parameters(SIMULATION, {"camera_rate": 0})
    for process in ("cache_manager", "soft_stages"):  # what was learned in a run before is no help
        system = system.with_parameters(process, {"store_path": ":memory:"})
    path = folder / "plan.json"
    write_plan(path, list(plan))
    for phase in plan:
        (folder / f"{phase.name}.json").unlink(missing_ok=True)
    arguments = [str(path), "--priority", str(PRIORITIES[SIMULATION])]
    driver = Program(
        name="driver",
        executable="driver",
        nodes=("driver",),
        namespace=robot.namespace,
        environment=environment_of(system, CAMERA),
        arguments=(*arguments, "--namespace", robot.namespace),
    )
    return system.with_process(driver)


def _figures(
    plan: Sequence[Phase], folder: Path, robot: Arguments, usage: Usage, trouble: str
) -> dict[str, Any]:
    found: dict[str, Any] = {"trouble": trouble}
    for phase in plan:
        record = read_record(folder / f"{phase.name}.json")
        if record is None:
            found["trouble"] = found["trouble"] or f"{phase.name} was not reached"
            continue
        times = rows.load(folder / f"{phase.name}.npy")
        used = usage.between(record.begin_ns, record.end_ns, robot.namespace)
        found[phase.name] = pipeline_figures.of_phase(phase, record, times, used)
        found["trouble"] = found["trouble"] or record.trouble
    return found
