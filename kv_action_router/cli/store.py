"""``kv_router store``: the file that keeps a cache, while no cache manager has it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kv_action_router.caching.store.location import IN_MEMORY, store_file
from kv_action_router.caching.store.portable import export, load_into
from kv_action_router.caching.store.store import CacheStore
from kv_action_router.cli.verbs import Answer
from kv_action_router.errors import ConfigError, StoreError
from kv_action_router.identity import identify


def add_verb(verbs: Any) -> None:
    """Declare the verb and what it does."""
    help_text = "what a cache's file holds; write it into a portable file, read one back"
    parser = verbs.add_parser("store", help=help_text, description=help_text)
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _declare(actions, "info", "what the file holds", _info)
    portable = "portable file (JSON Lines; gzip where the name ends with .gz)"
    _declare(actions, "export", "write it into a portable file", _export).add_argument(
        "portable", type=Path, help=portable
    )
    _declare(actions, "import", "add what a portable file holds", _import).add_argument(
        "portable", type=Path, help=portable
    )


def _declare(
    actions: Any, name: str, help_text: str, act: Callable[[argparse.Namespace], Answer]
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = actions.add_parser(
        name, help=help_text, description=help_text
    )
    parser.add_argument("--file", default="", help="as the parameter store_path; empty = default")
    parser.add_argument("--robot-id", default="", help="empty = the identity of this machine")
    parser.add_argument("--namespace", default="", help="of the router's nodes")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")

    def run(options: argparse.Namespace) -> int:
        try:
            answer = act(options)
        except OSError as error:
            raise StoreError(str(error)) from error
        print(json.dumps(answer, indent=2) if options.json else _show(answer))
        return 0

    parser.set_defaults(run=run)
    return parser


def _path(options: argparse.Namespace, *, must_exist: bool) -> Path:
    robot_id = identify(options.robot_id, options.namespace).robot_id
    path = store_file(options.file, robot_id)
    if path is None:
        raise ConfigError("file", "a path", IN_MEMORY)
    if must_exist and not path.is_file():
        raise StoreError(f"there is no file {path}")
    return path


def _info(options: argparse.Namespace) -> Answer:
    with closing(CacheStore(_path(options, must_exist=True))) as store:
        entries = sum(len(rows) for rows in store.rows())
        return {
            "file": str(store.path),
            "entries": entries,
            "grants": [f"{owner} -> {reader}" for owner, reader in sorted(store.state.grants)],
            "execution_values": sorted(store.state.execution),
            "kept_aside": store.kept_aside(),
            "found": store.notes,
        }


def _export(options: argparse.Namespace) -> Answer:
    with closing(CacheStore(_path(options, must_exist=True))) as store:
        return {"file": str(store.path), **asdict(export(store, options.portable))}


def _import(options: argparse.Namespace) -> Answer:
    with closing(CacheStore(_path(options, must_exist=False))) as store:
        return {"file": str(store.path), **asdict(load_into(store, options.portable))}


def _show(answer: Answer) -> str:
    shown = {name: value for name, value in answer.items() if value not in ([], {})}
    return "\n".join(f"{name.replace('_', ' '):<16}  {value}" for name, value in shown.items())
