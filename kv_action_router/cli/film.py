"""The film strip of a run: its best cycle, rendered when nothing runs any more."""

from __future__ import annotations

import cv2
import numpy as np

from kv_action_router.contracts import FloatArray
from kv_action_router.reporting.film import Frame, shots
from kv_action_router.reporting.records import RunRecord
from kv_action_router.simulation.config import cell_of
from kv_action_router.simulation.replay import Replay
from kv_action_router.tasks.station import load_station

_QUALITY = 84  # of the JPEGs


def film(run: RunRecord, work: str, seed: int) -> tuple[list[Frame], FloatArray]:
    """Return the pictures of the traced cycle, and the tip at each of its samples (k, 3) [m].

    Args:
        run: with its trace.
        work: station whose cell it was.
        seed: that the simulation had.

    Raises:
        RouterError: the cell has other joints.
        RuntimeError: nothing can be rendered here.
    """
    trace, cycle = run.trace, run.traced_cycle
    wanted = shots(trace, cycle.spans if cycle is not None else [])
    if not wanted:
        return [], np.zeros((0, 3))
    places = [(placement.x, placement.y, placement.yaw) for placement in trace.placements]
    by_sample = {shot.sample: shot for shot in wanted}
    frames, tips = [], []
    with Replay(cell_of(load_station(work).cell, seed=seed), places) as replay:
        for index, sample in enumerate(trace.motion):
            tips.append(replay.pose(trace.joints, sample.measured))
            if index in by_sample:
                _, jpeg = cv2.imencode(
                    ".jpg", replay.picture()[:, :, ::-1], (cv2.IMWRITE_JPEG_QUALITY, _QUALITY)
                )
                frames.append(Frame(by_sample[index], jpeg.tobytes()))
    return frames, np.array(tips)
