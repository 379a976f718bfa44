"""What the verbs of ``kv_router`` that ask a running cache manager have in common."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

Answer = dict[str, Any]

TIMEOUT_S = 5.0


def declare(verbs: Any, name: str, help_text: str) -> argparse.ArgumentParser:
    """Add a verb with the arguments that each of them takes."""
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=help_text, description=help_text)
    parser.add_argument("--namespace", default="", help="of the router's nodes")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument(
        "--timeout", type=_seconds, default=TIMEOUT_S, help="of each wait [s]; default %(default)g"
    )
    return parser


def does(
    parser: argparse.ArgumentParser,
    ask: Callable[[Any, argparse.Namespace], Answer],
    show: Callable[[Answer], str],
) -> None:
    """Let a verb ask a cache manager and print the answer, as JSON or for people."""

    def run(options: argparse.Namespace) -> int:
        from kv_action_router.ros.cache_client import connected

        with connected(options.namespace, options.timeout) as client:
            answer = ask(client, options)
        print(json.dumps(answer, indent=2) if options.json else show(answer))
        return 0

    parser.set_defaults(run=run)


def whole(bits: int) -> Callable[[str], int]:
    """Return a reader of whole numbers of so many bits."""

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
