"""Verbs of ``kv_router`` about the cache: what it would find, holds, shares and counts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

from kv_action_router.cli import cache_tables as tables

Answer = dict[str, Any]

TIMEOUT_S = 5.0


def add_verbs(verbs: Any) -> None:
    """Add the verbs to a parser's."""
    explain = _verb(verbs, "explain", "what the present situation would find, and why")
    _filter(explain, "the active one")
    _does(explain, _explain, tables.show_explanation)

    entries = _verb(verbs, "entries", "which entries a domain may read")
    _filter(entries, "any")
    entries.add_argument("--after", type=_whole(64), default=0, help="only ids above it")
    entries.add_argument("--limit", type=_whole(32), default=0, help="of the list; default 100")
    _does(entries, _entries, tables.show_entries)

    get = _verb(verbs, "get", "one entry as it is stored; with --json its key and behavior as well")
    get.add_argument("entry_id", type=_whole(64), help="of the entry")
    _domain(get)
    _does(get, _get, tables.show_entry)

    _add_domains(verbs)
    _add_invalidate(verbs)

    statistics = _verb(verbs, "statistics", "what each layer and domain has counted")
    _does(statistics, lambda client, _: client.statistics(), tables.show_statistics)


def _add_domains(verbs: Any) -> None:
    domains = verbs.add_parser("domains", help="who may read whose entries", description=None)
    actions = domains.add_subparsers(dest="action", required=True, metavar="ACTION")
    listed = _verb(actions, "list", "domains, what they hold and who may read them")
    _does(listed, lambda client, _: client.domains(), tables.show_domains)
    for name, isolated, help_text in (
        ("share", False, "let a domain read another's entries"),
        ("revoke", True, "take that back"),
    ):
        action = _verb(actions, name, help_text)
        action.add_argument("owner", help="domain whose entries are shared")
        action.add_argument("reader", help="domain that reads them")
        action.set_defaults(isolated=isolated)
        _does(action, _set_isolation, tables.show_grants)


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
        scope = _verb(scopes, name, help_text)
        if name == "entry":
            scope.add_argument("entry_id", type=_whole(64), help="of the entry")
        elif name == "task":
            scope.add_argument("intent_id", help="of the entries")
        elif name == "layer":
            scope.add_argument("layer", help="task, behavior or execution")
        if name == "domain":
            scope.add_argument("domain", help="whose entries go")
        elif name != "all":
            _domain(scope)
        scope.add_argument("--reason", required=True, help="why; it is kept and logged")
        _does(scope, _invalidate, tables.show_message)


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


def _verb(verbs: Any, name: str, help_text: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=help_text, description=help_text)
    parser.add_argument("--namespace", default="", help="of the router's nodes")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument(
        "--timeout", type=_seconds, default=TIMEOUT_S, help="of each wait [s]; default %(default)g"
    )
    return parser


def _does(
    parser: argparse.ArgumentParser,
    ask: Callable[[Any, argparse.Namespace], Answer],
    show: Callable[[Answer], str],
) -> None:
    def run(options: argparse.Namespace) -> int:
        from kv_action_router.ros.cache_client import connected

        with connected(options.namespace, options.timeout) as client:
            answer = ask(client, options)
        print(json.dumps(answer, indent=2) if options.json else show(answer))
        return 0

    parser.set_defaults(run=run)


def _domain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--domain", default="", help="cache partition; default: the robot's own")


def _filter(parser: argparse.ArgumentParser, intent: str) -> None:
    _domain(parser)
    parser.add_argument("--intent", default="", help=f"intent id; default: {intent}")
    parser.add_argument("--subtask", default="", help="name and version; default: any")


def _whole(bits: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and int(text) < 2**bits):
            limit = f"an integer from 0 to {2**bits - 1}"
            raise argparse.ArgumentTypeError(f"must be {limit}, got {text!r}")
        return int(text)

    return read


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value <= 600.0:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 600 s, got {text!r}")
    return value
