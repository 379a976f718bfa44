"""Verbs of ``kv_router`` about the cache: what it would find, holds, shares and counts."""

from __future__ import annotations

import argparse
from typing import Any

from kv_action_router.cli import cache_tables as tables
from kv_action_router.cli.verbs import Answer, declare, does, whole


def add_verbs(verbs: Any) -> None:
    """Add the verbs to a parser's."""
    explain = declare(verbs, "explain", "what the present situation would find, and why")
    _filter(explain, "the active one")
    does(explain, _explain, tables.show_explanation)

    entries = declare(verbs, "entries", "which entries a domain may read")
    _filter(entries, "any")
    entries.add_argument("--after", type=whole(64), default=0, help="only ids above it")
    entries.add_argument("--limit", type=whole(32), default=0, help="of the list; default 100")
    does(entries, _entries, tables.show_entries)

    get = declare(
        verbs, "get", "one entry as it is stored; with --json its key and behavior as well"
    )
    get.add_argument("entry_id", type=whole(64), help="of the entry")
    _domain(get)
    does(get, _get, tables.show_entry)

    _add_domains(verbs)
    _add_invalidate(verbs)

    statistics = declare(verbs, "statistics", "what each layer and domain has counted")
    does(statistics, lambda client, _: client.statistics(), tables.show_statistics)


def _add_domains(verbs: Any) -> None:
    domains = verbs.add_parser("domains", help="who may read whose entries", description=None)
    actions = domains.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = declare(actions, "list", "domains, what they hold and who may read them")
    does(listed, lambda client, _: client.domains(), tables.show_domains)
    for name, isolated, help_text in (
        ("share", False, "let a domain read another's entries"),
        ("revoke", True, "take that back"),
    ):
        action = declare(actions, name, help_text)
        action.add_argument("owner", help="domain whose entries are shared")
        action.add_argument("reader", help="domain that reads them")
        action.set_defaults(isolated=isolated)
        does(action, _set_isolation, tables.show_grants)


def _add_invalidate(verbs: Any) -> None:
    invalidate = verbs.add_parser("invalidate", help="throw entries away", description=None)
    scopes = invalidate.add_subparsers(dest="scope", required=True, metavar="SCOPE")
    for name, help_text in (
        ("entry", "one entry"),
        ("task", "all entries of an intent"),
        ("layer", "a layer: task, behavior or execution"),
        ("domain", "all entries of a domain"),
        ("all", "everything but execution values"),
    ):
        scope = declare(scopes, name, help_text)
        if name == "entry":
            scope.add_argument("entry_id", type=whole(64), help="of the entry")
        elif name == "task":
            scope.add_argument("intent_id", help="of the entries")
        elif name == "layer":
            scope.add_argument("layer", help="task, behavior or execution")
            scope.add_argument(
                "--version",
                dest="entry_id",
                type=whole(64),
                default=0,
                help="of execution: go back to this version; default: the one at activation",
            )
        if name == "domain":
            scope.add_argument("domain", help="whose entries go")
        elif name != "all":
            _domain(scope)
        scope.add_argument("--reason", required=True, help="why; it is kept and logged")
        does(scope, _invalidate, tables.show_message)


# --- what a verb asks -------------------------------------------------------------------------


def _explain(client: Any, options: argparse.Namespace) -> Answer:
    return client.explain(options.domain, options.intent, options.subtask)


def _entries(client: Any, options: argparse.Namespace) -> Answer:
    return client.entries(
        options.domain, options.intent, options.subtask, options.after, options.limit
    )


def _get(client: Any, options: argparse.Namespace) -> Answer:
    return client.entry(options.entry_id, options.domain)


def _set_isolation(client: Any, options: argparse.Namespace) -> Answer:
    return client.set_isolation(options.owner, options.reader, options.isolated)


def _invalidate(client: Any, options: argparse.Namespace) -> Answer:
    fields = ("entry_id", "intent_id", "layer", "domain")
    what = {name: getattr(options, name) for name in fields if hasattr(options, name)}
    return client.invalidate(options.scope, options.reason, **what)


# --- inside ---------------------------------------------------------------------------------------


def _domain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--domain", default="", help="cache partition; default: the robot's own")


def _filter(parser: argparse.ArgumentParser, intent: str) -> None:
    _domain(parser)
    parser.add_argument("--intent", default="", help=f"intent id; default: {intent}")
    parser.add_argument("--subtask", default="", help="name and version; default: any")
