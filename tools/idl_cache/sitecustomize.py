"""Lets ROS 2's interface generators share one parse of each interface during a build.

There are ten generators, each parses every interface anew, and rosidl's general parser takes 0.2 s
a file: half of the build's time. `tools/setup.sh` puts this folder on the build's PYTHONPATH and
names a folder for the results in KV_IDL_CACHE. They are keyed by the text that was parsed, so a
changed interface is parsed again.
"""

import hashlib
import os
import pickle
import sys
from pathlib import Path


def _share_parses(folder: Path) -> None:
    from rosidl_parser import parser

    parse = parser.parse_idl_string

    def parse_once(text: str, png_file: str | None = None):
        result = folder / f"{hashlib.sha256(text.encode()).hexdigest()}.pickle"
        try:
            return pickle.loads(result.read_bytes())
        except FileNotFoundError:
            content = parse(text, png_file)
        # Two generators may run at the same time: a reader never sees half a file.
        unfinished = result.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(pickle.dumps(content))
        unfinished.replace(result)
        return content

    folder.mkdir(parents=True, exist_ok=True)
    parser.parse_idl_string = parse_once


# Every interpreter of the build imports this module; only the generators parse interfaces.
if "--generator-arguments-file" in sys.orig_argv and "KV_IDL_CACHE" in os.environ:
    _share_parses(Path(os.environ["KV_IDL_CACHE"]))
