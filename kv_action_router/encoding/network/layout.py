"""Sizes of the two networks' inputs and outputs; training and run time share them.

Both take five planes: red, green, blue (0 to 1, minus a half), height, and whether the height was
measured. Heights instead of distances: what the camera's place is does not matter to the network.
"""

from __future__ import annotations

from collections.abc import Mapping

from kv_action_router.contracts import SCENE_SLICE

PLANES = 5
HEIGHT_PLANE, MEASURED_PLANE = 3, 4

OVERVIEW = (120, 160)  # rows, columns of the whole picture, made small
OVERVIEW_CELL = 4  # [px of the overview] a cell of the map of likely places
OVERVIEW_MAP = (OVERVIEW[0] // OVERVIEW_CELL, OVERVIEW[1] // OVERVIEW_CELL)
OVERVIEW_HEIGHT = 0.25  # [m] of height above the base plane that is written as 1

CLOSEUP = 48  # rows and columns of the cut-out
CLOSEUP_CELL = 2  # [px of the cut-out] a cell of its maps
CLOSEUP_MAP = CLOSEUP // CLOSEUP_CELL
CLOSEUP_HEIGHT = 0.25  # of the cut-out's width: height above its own level that is written as 1
HEIGHT_LIMIT = 2.0  # what is written at most

# answers of the close-up, in order
PRESENT = 0  # logit
SPREAD = slice(1, 3)  # logarithm of the standard deviation of column and row, in cut-out widths
HEADING = slice(3, 5)  # sine and cosine of fold times the yaw relative to the line of sight
HEADING_SPREAD = 5  # logarithm of the standard deviation of that angle [rad]
ANSWERS = 6

SCENE_SIZE = SCENE_SLICE.stop - SCENE_SLICE.start

INPUTS: Mapping[str, tuple[int, ...]] = {
    "overview": (1, PLANES, *OVERVIEW),
    "closeup": (1, PLANES, CLOSEUP, CLOSEUP),
}
OUTPUTS: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "overview": {"likely": (1, 1, *OVERVIEW_MAP), "scene": (1, SCENE_SIZE)},
    "closeup": {
        "place": (1, 2),  # column and row of the center, in cut-out widths from its middle
        "face": (1, 1, CLOSEUP_MAP, CLOSEUP_MAP),  # probability
        "answers": (1, ANSWERS),
    },
}
