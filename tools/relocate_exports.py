"""Point the exported CMake files of installed ROS 2 wheels at this interpreter's headers.

Some wheels were exported with the include folders of the machine that built them. CMake stops at a
folder that does not exist, so every install of a wheel must be followed by this.

Usage: .venv/bin/python tools/relocate_exports.py
"""

import re
import sys
import sysconfig
from pathlib import Path

import numpy

BUILDER_INCLUDE = re.compile(r"/opt/python/[^;\"]*?/include/python3\.\d+")
BUILDER_NUMPY_INCLUDE = re.compile(r"/opt/python/[^;\"]*?/site-packages/numpy/_?core/include")


def relocate(text: str, python_include: str, numpy_include: str) -> str:
    """Replace the wheel builder's include folders in the text of one exported CMake file."""
    text = BUILDER_NUMPY_INCLUDE.sub(lambda _: numpy_include, text)
    return BUILDER_INCLUDE.sub(lambda _: python_include, text)


def main() -> None:
    """Rewrite the files below this interpreter's prefix."""
    changed = 0
    for file in Path(sys.prefix, "share").glob("*/cmake/*.cmake"):
        before = file.read_text(encoding="utf-8")
        after = relocate(before, sysconfig.get_path("include"), numpy.get_include())
        if after != before:
            file.write_text(after, encoding="utf-8")
            changed += 1
    print(f"relocated the include folders of {changed} exported CMake files")


if __name__ == "__main__":
    main()
