"""A robot's identity: configured, else kept, else from the hardware; never another's by chance."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kv_action_router import identity
from kv_action_router.errors import ConfigError
from kv_action_router.identity import hardware_addresses, identify, ros_name, state_folder

GLOBAL = "00:1b:21:aa:bb:cc"


class Machine:
    """A machine's network cards and the folder that its identities are kept in."""

    def __init__(self, folder: Path) -> None:
        self.network = folder / "net"
        self.folder = folder / "state" / "identity"
        self.boot_id = folder / "boot_id"
        self.boot_id.write_text("5d2f0b1c-7c0f-4e3e-9a53-1c0e4a1b2c3d\n")
        self.cards()

    def cards(self, *addresses: str) -> Machine:
        for number, old in enumerate(self.network.glob("*/address")):
            old.rename(old.with_name(f"gone{number}"))
        for number, address in enumerate(addresses):
            card = self.network / f"eth{number}"
            card.mkdir(parents=True, exist_ok=True)
            (card / "address").write_text(address + "\n")
        return self

    def identify(self, configured: str = "", namespace: str = "") -> identity.Identity:
        return identify(
            configured, namespace, folder=self.folder, network=self.network, boot_id=self.boot_id
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_configured_wins_over_kept_and_hardware(machine: Machine) -> None:
    machine.cards(GLOBAL).identify()
    found = machine.identify("agv-01")
    assert (found.robot_id, found.source, found.warning) == ("agv-01", "configured", "")


@pytest.mark.parametrize("name", ["agv-01", "7bot", "hall/ur5e_2"])
def test_names_that_are_taken_as_they_are(machine: Machine, name: str) -> None:
    assert machine.identify(name).robot_id == name


@pytest.mark.parametrize("name", ["a b", "größe", "x" * 65, "a;b", "\n"])
def test_other_names_are_refused_with_field_limit_and_value(machine: Machine, name: str) -> None:
    with pytest.raises(ConfigError, match=r"robot_id must be empty, or .*, got"):
        machine.identify(name)


@pytest.mark.parametrize(
    ("name", "ros"),
    [
        ("agv-01", "agv_01"),
        ("7bot", "r7bot"),
        ("hall/ur5e_2", "hall_ur5e_2"),
        ("a--b__c", "a_b_c"),
        ("...", "r"),
    ],
)
def test_how_a_robot_id_becomes_a_ros_name(name: str, ros: str) -> None:
    assert ros_name(name) == ros


def test_hardware_address_is_used_and_kept(machine: Machine) -> None:
    first = machine.cards(GLOBAL).identify()
    assert first.robot_id == "robot-001b21aabbcc"
    assert GLOBAL.replace(":", "") in first.source
    again = machine.identify()
    assert again.robot_id == first.robot_id
    assert str(machine.folder) in again.source
    assert not again.warning


def test_addresses_that_tell_nothing_are_left_out(machine: Machine) -> None:
    machine.cards(
        "00:00:00:00:00:00",  # none
        "02:42:ac:11:00:02",  # locally administered: containers
        "01:00:5e:00:00:01",  # multicast
        "not an address",
        "",
        "00:1b:21",
        GLOBAL,
        GLOBAL,  # a bond shows its cards' address again
        "00:0a:0b:0c:0d:0e",
    )
    assert hardware_addresses(machine.network) == ["000a0b0c0d0e", "001b21aabbcc"]
    assert hardware_addresses(machine.network / "not there") == []


def test_without_a_hardware_address_it_is_random_and_kept(tmp_path: Path) -> None:
    ids = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        machine = Machine(tmp_path / name).cards("02:42:ac:11:00:02")
        ids.add(machine.identify().robot_id)
        assert machine.identify().robot_id in ids
    assert len(ids) == 2  # two containers with one address are two robots


def test_a_changed_address_keeps_the_identity_and_says_so(machine: Machine) -> None:
    before = machine.cards(GLOBAL).identify()
    after = machine.cards("00:1b:21:00:00:01").identify()
    assert after.robot_id == before.robot_id
    assert "001b21aabbcc" in after.warning
    assert "001b21000001" in after.warning
    assert "robot_id" in after.warning
    assert not machine.cards("00:1b:21:00:00:01", GLOBAL).identify().warning
    assert not machine.cards().identify().warning  # a card that is only missing is no other robot


def test_two_robots_on_one_machine(machine: Machine) -> None:
    machine.cards(GLOBAL)
    ids = [machine.identify(namespace=name).robot_id for name in ("", "/robot1", "/hall/robot1")]
    assert ids == ["robot-001b21aabbcc" + end for end in ("", "-robot1", "-hall.robot1")]
    assert all(not identity.why_no_name(name) for name in ids)
    assert not identity.why_no_name(machine.identify(namespace="/" + "x" * 200).robot_id)


def test_all_nodes_of_a_robot_agree_although_they_start_at_once(machine: Machine) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: machine.identify().robot_id, range(8)))
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"robot_id": "x"}', '{"robot_id": "a b", "hardware_address": ""}', "\0" * 99],
)
def test_a_damaged_file_is_moved_aside_and_told(machine: Machine, content: str) -> None:
    made = machine.cards(GLOBAL).identify()
    path = machine.folder / "default.json"
    path.write_text(content)
    found = machine.identify()
    assert found.robot_id == made.robot_id  # the hardware is the same
    assert str(path) in found.warning
    assert path.with_suffix(".bad").read_text() == content
    assert json.loads(path.read_text())["robot_id"] == made.robot_id


def test_a_folder_that_takes_nothing(machine: Machine) -> None:
    machine.folder.parent.mkdir(parents=True)
    machine.folder.write_text("a file where the folder should be")
    for cards, robot_id in (([GLOBAL], "robot-001b21aabbcc"), ([], "robot-5d2f0b1c7c0f")):
        found = machine.cards(*cards).identify()
        assert found.robot_id == robot_id == machine.identify().robot_id
        assert "cannot be kept" in found.warning
        assert "set robot_id" in found.warning
    assert "started again" in found.warning


def test_where_it_is_kept(monkeypatch: Any, tmp_path: Path) -> None:
    assert state_folder({"XDG_STATE_HOME": "/a"}) == Path("/a/kv_action_router")
    home = Path("/home/r/.local/state/kv_action_router")
    assert state_folder({"HOME": "/home/r"}) == home
    assert state_folder({"HOME": "/home/r", "XDG_STATE_HOME": "relative"}) == home
    assert state_folder({}).is_absolute()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    identify(network=tmp_path / "none")
    assert (tmp_path / "kv_action_router" / "identity" / "default.json").is_file()
