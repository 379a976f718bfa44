"""``kv_router``: looks into a running router, and changes what its cache holds.

kv_router VERB --help   tells what a verb does; every verb prints JSON with --json
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from kv_action_router.cli import cache, calibrate, scene, store
from kv_action_router.errors import ConfigError, RouterError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Returns:
        0 on success, 1 when it could not be done, 2 when it was not asked properly; then one line
        on stderr says why.
    """
    options = make_parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except ConfigError as error:
        print(f"kv_router: {error}", file=sys.stderr)
        return 2
    except RouterError as error:
        print(f"kv_router: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"kv_router: needs a sourced ROS 2 workspace ({error})", file=sys.stderr)
        return 1


def make_parser() -> argparse.ArgumentParser:
    """Return the parser; each verb sets ``run(options)``, which returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="kv_router", description="Looks into a running kv_action_router."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    cache.add_verbs(verbs)
    calibrate.add_verb(verbs)
    scene.add_verb(verbs)
    store.add_verb(verbs)
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
