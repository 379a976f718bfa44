"""``kv_router``: looks into a running router.

kv_router explain   what the present situation would find in the cache, and why
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from kv_action_router.errors import RouterError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; 0 on success, 1 with one line on stderr when it could not be done."""
    parser = argparse.ArgumentParser(
        prog="kv_router", description="Looks into a running kv_action_router."
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    explain = verbs.add_parser(
        "explain", help="what the present situation would find in the cache, and why"
    )
    explain.add_argument("--namespace", default="", help="of the router's nodes")
    explain.add_argument("--domain", default="", help="cache partition; default: the robot's own")
    explain.add_argument("--intent", default="", help="intent id; default: the active one")
    explain.add_argument("--subtask", default="", help="name and version; default: any")
    explain.add_argument("--json", action="store_true", help="print the answer as JSON")
    options = parser.parse_args(arguments)
    from kv_action_router.ros.explain import explain_now

    try:
        answer = explain_now(
            namespace=options.namespace,
            domain=options.domain,
            intent=options.intent,
            subtask=options.subtask,
        )
    except RouterError as error:
        print(f"kv_router: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer, indent=2) if options.json else describe(answer))
    return 0


def describe(answer: dict[str, Any]) -> str:
    """Return an answer as lines for people."""
    found = f"hit: entry {answer['entry_id']}" if answer["hit"] else "miss"
    similarity, target = _number(answer["similarity"]), _number(answer["target_similarity"])
    worst = _number(answer["worst_slice_similarity"])
    rows = {
        "similarity": f"{similarity} (threshold {answer['threshold']:.3f})",
        "margin": _number(answer["margin"]),
        "target slice": f"{target} (minimum {answer['target_minimum']:.3f})",
        "worst slice": f"{answer['worst_slice'] or '-'} ({worst})",
        "guard": answer["guard"] or "none refused",
        "subtask": answer["subtask"] or "-",
        "domain": answer["source_domain"] or "-",
    }
    lines = [f"{found} ({answer['reason'] or 'no reason given'})"]
    lines += [f"  {name:<12}  {text}" for name, text in rows.items()]
    return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


if __name__ == "__main__":
    raise SystemExit(main())
