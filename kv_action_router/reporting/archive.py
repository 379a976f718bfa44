"""A run's records as a file, so that its report can be made anew: by later code, without a run."""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from kv_action_router.errors import InputError
from kv_action_router.reporting.records import (
    CycleRecord,
    CycleTrace,
    LoopCounters,
    MotionSample,
    Passage,
    Placement,
    RunRecord,
    StageSpan,
    TargetFrame,
)
from kv_action_router.reporting.report import Setting

VERSION = 1
_PLAIN = (
    "image_ages_ms",
    "lateness_us",
    "false_hits",
    "decisions_unsent",
    "real_time_factors",
    "cpu_percent",
    "rss_mb",
    "failures",
    "stops",
    "ended_by",
)


def save(run: RunRecord, setting: Setting, path: Path) -> None:
    """Write records and setting as JSON; its folder is made. Not measured is ``NaN``."""
    content = {
        "version": VERSION,
        "setting": dataclasses.asdict(setting),
        **{name: getattr(run, name) for name in _PLAIN},
        "cycles": [dataclasses.asdict(cycle) for cycle in run.cycles],
        "passages": [dataclasses.astuple(passage) for passage in run.passages],
        "counters": dataclasses.asdict(run.counters),
        "trace": _trace_to(run.trace),
        "frame": None if run.frame is None else _frame_to(run.frame),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content) + "\n")


def load(path: Path) -> tuple[RunRecord, Setting]:
    """Return what :func:`save` has written.

    Raises:
        InputError: the file is missing, damaged, or of another version.
    """
    try:
        content = json.loads(path.read_text())
        if content["version"] != VERSION:
            raise InputError("version", str(VERSION), content["version"])
        run = RunRecord(
            **{name: content[name] for name in _PLAIN},
            cycles=[_cycle_from(cycle) for cycle in content["cycles"]],
            passages=[
                Passage(trace, kind, tuple(stages)) for trace, kind, stages in content["passages"]
            ],
            counters=LoopCounters(**content["counters"]),
            trace=_trace_from(content["trace"]),
            frame=None if content["frame"] is None else _frame_from(content["frame"]),
        )
        return run, Setting(**content["setting"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        wanted = "a file that a demonstration wrote"
        raise InputError("records", wanted, f"{path}: {error}") from None


def _cycle_from(content: dict[str, Any]) -> CycleRecord:
    spans = [StageSpan(**span) for span in content["spans"]]
    return CycleRecord(**{**content, "spans": spans})


def _trace_to(trace: CycleTrace) -> dict[str, Any]:
    return {
        "index": trace.index,
        "joints": trace.joints,
        "motion": [
            (
                sample.time,
                _rounded(sample.setpoint),
                _rounded(sample.measured),
                _rounded(sample.command),
            )
            for sample in trace.motion
        ],
        "forces": [(time, *_rounded(force)) for time, *force in trace.forces],
        "placements": [dataclasses.astuple(placement) for placement in trace.placements],
    }


def _trace_from(content: dict[str, Any]) -> CycleTrace:
    return CycleTrace(
        index=content["index"],
        joints=tuple(content["joints"]),
        motion=[
            MotionSample(time, np.array(setpoint), np.array(measured), np.array(command))
            for time, setpoint, measured, command in content["motion"]
        ],
        forces=[(time, x, y, z) for time, x, y, z in content["forces"]],
        placements=tuple(Placement(*values) for values in content["placements"]),
    )


def _frame_to(frame: TargetFrame) -> dict[str, Any]:
    _, png = cv2.imencode(".png", frame.image[:, :, ::-1])
    return {
        "png": base64.b64encode(png.tobytes()).decode(),
        "pixel": frame.pixel,
        "radius": frame.radius,
    }


def _frame_from(content: dict[str, Any]) -> TargetFrame:
    png = np.frombuffer(base64.b64decode(content["png"]), np.uint8)
    image = cv2.imdecode(png, cv2.IMREAD_COLOR)
    if image is None:
        raise ValueError("the image is no PNG")
    u, v = content["pixel"]
    return TargetFrame(image[:, :, ::-1].copy(), (u, v), content["radius"])


def _rounded(values: Any) -> list[float]:
    """Return numbers with a millionth of a radian, newton or newton meter."""
    return [round(float(v), 6) if math.isfinite(v) else float(v) for v in values]
