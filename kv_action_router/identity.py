"""Who a robot is: as configured, else as it was kept, else made from its hardware address.

The identity is a cache partition's name and, hashed, the robot slice of every key. It must survive
restarts and be the same in all nodes of a robot, so what was made once is kept in a small file.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kv_action_router.errors import ConfigError

NAME_LIMIT = 64
NETWORK = Path("/sys/class/net")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_NAME = re.compile(r"[A-Za-z0-9_./-]+")
_SUFFIX_LIMIT = NAME_LIMIT - len("robot-001122334455-")
_MULTICAST, _LOCAL = 0x01, 0x02  # bits of an address's first octet


@dataclass(frozen=True, slots=True)
class Identity:
    """A robot's identity.

    Attributes:
        robot_id: its name.
        source: where the name comes from, for people.
        warning: what somebody should look at; empty = nothing.
    """

    robot_id: str
    source: str
    warning: str = ""


def why_no_name(value: object) -> str:
    """Return what a name of a robot or a domain must be and this one is not; empty = it is one."""
    if not isinstance(value, str) or not value:
        return "be a name that is not empty"
    if len(value) > NAME_LIMIT:
        return f"have at most {NAME_LIMIT} characters"
    if not _NAME.fullmatch(value):
        return "consist of letters, digits and the characters _ - . /"
    return ""


def check_if_named(field: str, value: str) -> str:
    """Return a configured name; empty = none is configured.

    Raises:
        ConfigError: it is neither empty nor a name.
    """
    why = why_no_name(value) if value else ""
    if why:
        raise ConfigError(field, f"empty, or {why}", value[: 2 * NAME_LIMIT])
    return value


def ros_name(robot_id: str) -> str:
    """Return a name that ROS takes as a namespace: ``agv-01`` -> ``agv_01``, ``7bot`` -> ``r7bot``.

    ROS knows letters, digits and single underscores, and no digit at the beginning.
    """
    name = re.sub(r"[^A-Za-z0-9]+", "_", robot_id).strip("_")
    return name if name[:1].isalpha() else f"r{name}"


def state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where this package keeps what outlives a process (XDG base directories)."""
    base = environment.get("XDG_STATE_HOME", "")
    if not Path(base).is_absolute():  # the specification says to ignore relative ones
        base = str(Path(environment.get("HOME") or "/var/lib") / ".local" / "state")
    return Path(base) / "kv_action_router"


def hardware_addresses(network: Path = NETWORK) -> list[str]:
    """Return the addresses that makers gave to this machine's network cards, each once, sorted.

    Left out are those that tell nothing: zero, multicast and locally administered ones (bridges,
    containers, randomized wireless cards), which other machines may have as well.
    """
    found = set()
    for path in network.glob("*/address"):
        with contextlib.suppress(OSError, ValueError):
            octets = bytes.fromhex(path.read_text().strip().replace(":", ""))
            if len(octets) == 6 and any(octets) and not octets[0] & (_MULTICAST | _LOCAL):
                found.add(octets.hex())
    return sorted(found)


def identify(
    configured: str = "",
    namespace: str = "",
    *,
    folder: Path | None = None,
    network: Path = NETWORK,
    boot_id: Path = BOOT_ID,
) -> Identity:
    """Return the identity of the robot whose nodes run in a namespace of this machine.

    Args:
        configured: identity from the configuration; empty = none.
        namespace: of the robot's nodes: one machine may run several.
        folder: where identities are kept; None = ``identity`` in :func:`state_folder`.
        network, boot_id: where the kernel tells addresses, and what changes at each start.

    Raises:
        ConfigError: the configured identity is not a name.
    """
    if check_if_named("robot_id", configured):
        return Identity(configured, "configured")
    folder = state_folder() / "identity" if folder is None else folder
    robot = namespace.strip("/").replace("/", ".")
    path = folder / f"{robot or 'default'}.json"
    addresses = hardware_addresses(network)
    kept = _read(path)
    if kept is not None:
        return _recognize(kept, path, addresses)
    suffix = f"-{robot[-_SUFFIX_LIMIT:]}" if robot else ""
    try:
        with _locked(folder):
            if (kept := _read(path)) is not None:  # another node of the robot was faster
                return _recognize(kept, path, addresses)
            return _make(path, addresses, suffix)
    except OSError as error:
        return _passing(path, error, addresses, suffix, boot_id)


# --- inside -------------------------------------------------------------------------------------


def _recognize(kept: tuple[str, str], path: Path, addresses: list[str]) -> Identity:
    robot_id, address = kept
    warning = ""
    if address and addresses and address not in addresses:
        warning = (
            f"the identity {robot_id!r} in {path} was made on a machine with the hardware address "
            f"{address}, this one has {', '.join(addresses)}: if the disk was copied from another "
            f"robot, set robot_id or delete the file; if the network card was changed, all is well"
        )
    return Identity(robot_id, f"kept in {path}", warning)


def _make(path: Path, addresses: list[str], suffix: str) -> Identity:
    address = addresses[0] if addresses else ""
    warning = ""
    if path.exists():
        aside = path.with_suffix(".bad")
        path.replace(aside)
        warning = f"{path} could not be read: moved to {aside}, a new identity was made"
    robot_id = f"robot-{address or secrets.token_hex(6)}{suffix}"
    _write(path, robot_id, address)
    source = f"hardware address {address}" if address else "random, there is no hardware address"
    return Identity(robot_id, f"{source}; kept in {path}", warning)


def _passing(
    path: Path, error: OSError, addresses: list[str], suffix: str, boot_id: Path
) -> Identity:
    """Return an identity that cannot be kept, but that all nodes of this robot arrive at."""
    about = f"the identity cannot be kept in {path} ({error.strerror or error}): set robot_id"
    if addresses:
        return Identity(f"robot-{addresses[0]}{suffix}", f"hardware address {addresses[0]}", about)
    try:
        boot = boot_id.read_text().strip().replace("-", "")[:12]
    except OSError:
        boot = "unknown"
    lost = f"{about}; the one made now holds until this machine is started again"
    return Identity(f"robot-{boot}{suffix}", "start of the machine", lost)


def _read(path: Path) -> tuple[str, str] | None:
    """Return robot id and hardware address that are kept, or None."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        robot_id, address = content["robot_id"], content["hardware_address"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if why_no_name(robot_id) or not isinstance(address, str):
        return None
    return robot_id, address


def _write(path: Path, robot_id: str, address: str) -> None:
    content = {"robot_id": robot_id, "hardware_address": address}
    part = path.with_suffix(".part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep the robot's other nodes out while an identity is made."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
