"""Domains: one hard partition a robot, and the one-directional grants that let another read it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Set

from kv_action_router.errors import DomainError
from kv_action_router.identity import NAME_LIMIT, why_no_name


def check_name(field: str, value: object) -> str:
    """Return a domain's name if it is one.

    Raises:
        DomainError: naming the field, the limit and the value received.
    """
    if why := why_no_name(value):
        got = value[: 2 * NAME_LIMIT] if isinstance(value, str) else value
        raise DomainError(f"{field} must {why}, got {got!r}")
    return str(value)


def near(value: str, known: Iterable[str]) -> str:
    """Return a clause that lists the known names nearest to an unknown one."""
    names = sorted(set(known) - {""})
    close = difflib.get_close_matches(value[:NAME_LIMIT], names, n=3, cutoff=0.5)
    if close:
        return "near names: " + ", ".join(close)
    if names:
        more = ", ..." if len(names) > 5 else ""
        return "known: " + ", ".join(names[:5]) + more
    return "none is known"


class Domains:
    """Which domains exist, and who may read whose entries.

    Invariants: a domain reads itself and nothing else unless granted; a grant (owner -> reader)
    gives the owner nothing and passes nothing on. The grants are one immutable set that is swapped
    by reference, so a reader on another thread sees the old ones or the new ones.

    Attributes:
        sharing_refused: why no new grant is given now (somebody else claims the robot's identity);
            empty = they are. Those in force stay: taking them away could stop a motion.
    """

    def __init__(self, own: str) -> None:
        self.own = check_name("domain", own)
        self._known: frozenset[str] = frozenset({own})
        self._grants: frozenset[tuple[str, str]] = frozenset()
        self.sharing_refused = ""

    @property
    def known(self) -> Set[str]:
        """All domains that were named so far."""
        return self._known

    @property
    def grants(self) -> Set[tuple[str, str]]:
        """All grants in force, as (owner, reader)."""
        return self._grants

    def listed(self) -> list[str]:
        """Return the grants in force for people, sorted: ``owner -> reader``."""
        return [f"{owner} -> {reader}" for owner, reader in sorted(self._grants)]

    def register(self, name: str, field: str = "domain") -> str:
        """Make a domain known; ask :func:`check_name` first.

        Raises:
            DomainError: the name is not one.
        """
        if name not in self._known:
            self._known = self._known | {check_name(field, name)}
        return name

    def require(self, name: str, field: str = "domain") -> str:
        """Return a name that must be known.

        Raises:
            DomainError: it is not a name, or not known; lists near names.
        """
        check_name(field, name)
        if name not in self._known:
            raise DomainError(
                f"{field} must be a known domain, got {name!r} ({near(name, self._known)})"
            )
        return name

    def share(self, owner: str, reader: str) -> None:
        """Let ``reader`` read ``owner``'s entries. A reader may be new here, an owner may not.

        Raises:
            DomainError: a name is not one, the owner is unknown, both are the same, or nothing
                may be shared now.
        """
        self.require(owner, "owner_domain")
        check_name("reader_domain", reader)
        if owner == reader:
            raise DomainError(
                f"reader_domain must differ from owner_domain, got {reader!r} for both"
            )
        if self.sharing_refused:
            raise DomainError(
                f"owner_domain must not be shared while {self.sharing_refused}, got {owner!r}"
            )
        self.register(reader, "reader_domain")
        self._grants = self._grants | {(owner, reader)}

    def revoke(self, owner: str, reader: str) -> None:
        """Take a grant back; in force from the next key on.

        Raises:
            DomainError: there is no such grant; lists those in force.
        """
        check_name("owner_domain", owner)
        check_name("reader_domain", reader)
        if (owner, reader) not in self._grants:
            in_force = "; ".join(self.listed()) or "none"
            raise DomainError(
                f"owner_domain and reader_domain must name a grant in force, got "
                f"'{owner} -> {reader}' (in force: {in_force})"
            )
        self._grants = self._grants - {(owner, reader)}

    def may_read(self, reader: str, owner: str) -> bool:
        """Return whether ``reader`` may see an entry of ``owner``."""
        return reader == owner or (owner, reader) in self._grants

    def readable(self, reader: str) -> list[str]:
        """Return the domains that ``reader`` may read, itself first."""
        return [reader, *sorted(owner for owner, granted in self._grants if granted == reader)]
