"""The description of a system and the two ways to start it."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import pytest

from kv_action_router.errors import ConfigError
from kv_action_router.ros.arguments import Arguments
from kv_action_router.ros.bringup import main, parse
from kv_action_router.ros.dds_environment import LOCALHOST_ONLY, RANGE, dds_environment
from kv_action_router.ros.supervisor import Death, Supervisor
from kv_action_router.ros.system import SYSTEMS, Process, System

FIVE = {
    "task_key_encoder",
    "cache_manager",
    "behavior_synthesizer",
    "actuator_injector",
    "failure_monitor",
}
SIMULATED = {"simulation", "camera"}


def nodes(system: System) -> set[str]:
    return {node for process in system.processes for node in process.nodes}


def by_name(system: System, name: str) -> Process:
    return next(process for process in system.processes if process.name == name)


def test_the_default_system_is_five_processes_and_a_simulated_robot_and_camera():
    system = parse(["ur5e"])
    assert {process.name for process in system.processes} == FIVE | SIMULATED
    assert system.command_writers == {"effort_controller/commands": "actuator_injector"}


def test_the_camera_renders_behind_everything_that_is_in_a_hurry():
    system = parse(["ur5e"])
    in_a_hurry = {p.name for p in system.processes if p.parameters.get("scheduling_priority")}
    assert in_a_hurry == (FIVE | SIMULATED) - {"camera"}


def test_composed_has_the_same_nodes_in_fewer_processes():
    system = parse(["ur5e", "composed:=true"])
    assert nodes(system) == FIVE | SIMULATED
    assert {p.name for p in system.processes} == SIMULATED | {"actuator_injector", "soft_stages"}


def test_a_real_robot_has_no_simulation_and_gets_no_commands_unasked():
    system = parse(["ur5e", "sim:=false", "robot_ip:=192.0.2.1"])
    assert nodes(system) == FIVE
    assert by_name(system, "actuator_injector").parameters["dry_run"] is True
    assert any("dry run" in note for note in system.notes)
    live = parse(["ur5e", "sim:=false", "dry_run:=false"])
    assert by_name(live, "actuator_injector").parameters["dry_run"] is False


def test_the_controller_names_topic_and_interface():
    system = parse(["ur5e", "controller:=velocity"])
    assert by_name(system, "actuator_injector").parameters["command_interface"] == "velocity"
    assert list(system.command_writers) == ["velocity_controller/commands"]


def test_every_process_gets_namespace_parameters_and_log_level():
    system = parse(["ur5e", "namespace:=fleet/robot1", "log_level:=warn", "use_sim_time:=true"])
    for process in system.processes:
        words = process.command()
        assert "__ns:=/fleet/robot1" in words
        assert "use_sim_time:=true" in words
        assert words[words.index("--log-level") + 1] == "warn"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "robot must be one of ur5e"),
        (["ur10"], "got 'ur10'"),
        (["ur5e", "simulated:=true"], "argument must be name:=value"),
        (["ur5e", "sim:=yes"], "sim must be true or false, got 'yes'"),
        (["ur5e", "namespace:=7bot"], "namespace must be"),
        (["ur5e", "namespace:=a//b"], "namespace must be"),
        (["ur5e", "controller:=torque"], "controller must be one of effort, velocity, position"),
        (["ur5e", "params_file:=/nowhere.yaml"], "params_file must be an existing file"),
        (["ur5e", "log_level:=loud"], "log_level must be one of"),
    ],
)
def test_bad_arguments_are_named(words, message):
    with pytest.raises(ConfigError, match=message):
        parse(words)


def test_the_command_line_says_what_is_wrong_and_exits_with_2(capsys):
    assert main(["ur5e", "sim:=perhaps"]) == 2
    assert "sim must be true or false" in capsys.readouterr().err


def test_show_prints_the_commands_of_several_robots(capsys):
    assert main(["ur5e", "namespace:=r1", "--", "ur5e", "namespace:=r2", "--show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 14
    assert sum("__ns:=/r2" in line for line in lines) == 7


def test_help_describes_every_argument(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name, (_, info) in Arguments.parameters().items():
        assert f"{name}:=" in text
        assert info.description in text


def test_remaps_parameters_and_processes_can_be_added():
    system = SYSTEMS["ur5e"](Arguments())
    extra = Process("proxy", "proxy", ("proxy",))
    changed = (
        system.with_remaps("cache_manager", {"task_key": "proxy/task_key"})
        .with_parameters("simulation", {"seed": 7})
        .with_process(extra)
    )
    assert "task_key:=proxy/task_key" in by_name(changed, "cache_manager").command()
    assert "seed:=7" in by_name(changed, "simulation").command()
    assert changed.processes[-1] is extra
    assert by_name(system, "cache_manager").remaps == {}
    with pytest.raises(ConfigError, match="process must be one of"):
        system.with_remaps("cash_manager", {})


class _Script(Process):
    """A process that runs a Python text instead of an executable of the package."""

    def command(self) -> list[str]:
        return [sys.executable, "-c", self.executable]


def script(name: str, text: str) -> Process:
    return _Script(name, text, (name,))


OBEYS = "import signal, sys; signal.signal(2, lambda *_: sys.exit(0)); signal.pause()"


def test_a_death_is_named_with_its_cause_and_the_rest_stays(wait_until):
    system = System("test", (script("lives", OBEYS), script("dies", "raise SystemExit(3)")), {})
    supervisor = Supervisor([system])
    supervisor.start()
    try:
        death = wait_until(supervisor.deaths, 10.0, "the death of one process")[0]
        assert str(death) == "dies died: ended with code 3 (nodes: dies)"
        assert "the injector brings the robot to rest" in death.consequence
        assert list(supervisor.pids) == ["lives"]
        assert supervisor.deaths() == []
    finally:
        supervisor.stop()
    assert supervisor.pids == {}


def test_the_death_of_the_injector_leaves_the_brake_to_the_drives():
    death = Death("actuator_injector", ("actuator_injector",), -9)
    assert str(death).startswith("actuator_injector died: killed by SIGKILL")
    assert "the drives brake" in death.consequence


def test_nodes_without_images_do_without_shared_memory(monkeypatch):
    for name in (RANGE, LOCALHOST_ONLY):
        monkeypatch.delenv(name, raising=False)
    system = parse(["ur5e"])
    for process in system.processes:
        profiles = [Path(path).name for path in process.environment.values()]
        with_images = process.name in ("camera", "task_key_encoder")
        assert profiles == ([] if with_images else ["fastdds_udp.xml"])
    composed = by_name(parse(["ur5e", "composed:=true"]), "soft_stages")
    assert composed.environment == {}


@pytest.mark.parametrize("asked", [{RANGE: "LOCALHOST"}, {LOCALHOST_ONLY: "1"}])
def test_where_only_this_machine_is_discovered_profiles_do_it_and_not_ros(asked, tmp_path):
    """ROS would add transports to what the profile says, shared memory among them."""
    for images, name in ((True, "fastdds_loopback.xml"), (False, "fastdds_udp_loopback.xml")):
        chosen = dds_environment(tmp_path, images=images, environment=asked)
        assert chosen["FASTDDS_DEFAULT_PROFILES_FILE"] == str(tmp_path / name)
        assert chosen[RANGE] == "SUBNET"
        assert chosen[LOCALHOST_ONLY] == "0"
        profile = (Path(__file__).parents[2] / "config" / name).read_text()
        assert "<address>127.0.0.1</address>" in profile
        assert ("<type>SHM</type>" in profile) is images


def test_older_distributions_name_the_profile_differently(tmp_path):
    chosen = dds_environment(tmp_path, images=True, environment={"ROS_DISTRO": "jazzy"})
    assert chosen == {"FASTRTPS_DEFAULT_PROFILES_FILE": str(tmp_path / "fastdds.xml")}


def test_a_process_runs_in_its_own_environment(tmp_path, wait_until):
    written = tmp_path / "written"
    text = f"import os; open({str(written)!r}, 'w').write(os.environ['A'] + os.environ['B'])"
    process = dataclasses.replace(script("writer", text), environment={"B": "process"})
    supervisor = Supervisor([System("test", (process,), {}, {"A": "system ", "B": "system"})])
    supervisor.start()
    try:
        wait_until(supervisor.deaths, 10.0, "the end of the process")
    finally:
        supervisor.stop()
    assert written.read_text() == "system process"


def test_stop_ends_the_injector_before_the_others(tmp_path, wait_until):
    order = tmp_path / "order"
    note = (
        "import signal, sys\n"
        "def end(*_):\n"
        "    open({order!r}, 'a').write({name!r} + '\\n'); sys.exit(0)\n"
        "signal.signal(2, end)\n"
        "open({ready!r}, 'w').close()\n"
        "signal.pause()\n"
    )
    names = ("encoder", "actuator_injector", "monitor")
    system = System(
        "test",
        tuple(
            script(name, note.format(order=str(order), name=name, ready=str(tmp_path / name)))
            for name in names
        ),
        {},
    )
    supervisor = Supervisor([system])
    supervisor.start()
    wait_until(lambda: all((tmp_path / n).exists() for n in names), 10.0, "start of all three")
    assert supervisor.stop()
    assert order.read_text().splitlines()[0] == "actuator_injector"
    assert len(order.read_text().splitlines()) == 3
