"""Plots of one cycle, sample by sample, and of the screws of a run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import MaxNLocator

from kv_action_router.contracts import FloatArray
from kv_action_router.reporting.plot import Plot
from kv_action_router.reporting.records import CycleTrace, RunRecord, StageSpan
from kv_action_router.reporting.svg import BLUE, GRAY, INK, MUTED, ORANGE, SERIES

SPINDLE = "spindle_joint"
_WIDTH = 7.0  # [in]
_TARE_S = 0.1  # at rest, before the first stage
_GAP_S = 0.1  # without samples
_TOLERANCE = 0.10  # of the torque
_NO_TORQUE = 0.02  # share of the commanded one below which nothing is turned


def of_trace(run: RunRecord, report: dict[str, Any], tip: FloatArray | None) -> list[Plot | None]:
    """Draw the traced cycle, and screws; None where there is no data."""
    cycle = run.traced_cycle
    spans = [] if cycle is None else cycle.spans
    trace = run.trace
    found = [_tracking(trace, spans), _force(trace, spans)]
    if report["commanded_torque_nm"]:
        limit = float(report["commanded_torque_nm"])
        found += [
            _torque_over_angle(trace, spans, limit),
            _search_path(trace, spans, tip),
            _screws(run, limit),
        ]
    return found


def seconds_of(trace: CycleTrace, spans: list[StageSpan]) -> FloatArray:
    """Return the time of each motion sample since the first stage began (k,) [s]."""
    return np.array([sample.time for sample in trace.motion]) - origin(trace, spans)


def origin(trace: CycleTrace, spans: list[StageSpan]) -> float:
    """Return when the first stage began, CLOCK_MONOTONIC [s]."""
    if spans:
        return spans[0].begin_ns * 1e-9
    return trace.motion[0].time if trace.motion else 0.0


def samples_of(trace: CycleTrace, span: StageSpan) -> slice:
    """Return which motion samples are of a stage."""
    times = np.array([sample.time for sample in trace.motion])
    first, last = np.searchsorted(times, (span.begin_ns * 1e-9, span.end_ns * 1e-9))
    return slice(int(first), int(last))


def _tracking(trace: CycleTrace, spans: list[StageSpan]) -> Plot | None:
    if len(trace.motion) < 2:
        return None
    time = seconds_of(trace, spans)
    setpoint = np.array([sample.setpoint for sample in trace.motion])
    measured = np.array([sample.measured for sample in trace.motion])
    arm = [j for j in range(setpoint.shape[1]) if not _name(trace, j).endswith(SPINDLE)]
    if not arm:
        return None
    figure, (upper, lower) = plt.subplots(
        2, 1, figsize=(_WIDTH, 4.4), sharex=True, height_ratios=(2, 1)
    )
    for joint in arm:
        label = _name(trace, joint).removesuffix("_joint")
        (line,) = upper.plot(time, measured[:, joint], label=label)
        upper.plot(time, setpoint[:, joint], linestyle="--", color=line.get_color(), linewidth=0.8)
        lower.plot(time, 1e3 * (setpoint - measured)[:, joint], color=line.get_color())
    _shade((upper, lower), trace, spans)
    upper.set(ylabel="position [rad]")
    upper.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    lower.set(xlabel="time [s]", ylabel="error [mrad]")
    worst = float(np.max(np.abs((setpoint - measured)[:, arm]), initial=0.0)) * 1e3
    alt = (
        f"Positions of {len(arm)} joints over {time[-1] - time[0]:.1f} s with their set-points; "
        f"below the difference, {worst:.1f} mrad at most."
    )
    title = f"Cycle {trace.index}: measured (solid) and set-point (dashed)"
    return Plot("tracking", title, alt, figure)


def _force(trace: CycleTrace, spans: list[StageSpan]) -> Plot | None:
    if len(trace.forces) < 2:
        return None
    data = np.array(trace.forces, float)
    time = data[:, 0] - origin(trace, spans)
    quiet = (time <= 0.0) & (time >= time[0]) & (time > -_TARE_S)
    tare = data[quiet if quiet.sum() >= 4 else slice(0, 16), 1:].mean(axis=0)
    force = np.linalg.norm(data[:, 1:] - tare, axis=1)
    figure, axis = plt.subplots(figsize=(_WIDTH, 2.5))
    lost = np.flatnonzero(np.diff(time) > _GAP_S) + 1  # nothing is known of what lies between
    axis.plot(
        np.insert(time, lost, np.nan), np.insert(force, lost, np.nan), color=BLUE, linewidth=0.9
    )
    _shade((axis,), trace, spans)
    axis.set(xlabel="time [s]", ylabel="force [N]")
    axis.set_ylim(bottom=0.0)
    peak = int(np.argmax(force))
    alt = (
        f"Force at the flange over {time[-1] - time[0]:.1f} s, {force[peak]:.1f} N at most, "
        f"at {time[peak]:.1f} s."
    )
    return Plot("force", f"Cycle {trace.index}: force at the flange", alt, figure)


def _torque_over_angle(trace: CycleTrace, spans: list[StageSpan], limit: float) -> Plot | None:
    spindle = next((j for j, name in enumerate(trace.joints) if name.endswith(SPINDLE)), None)
    turned = [span for span in spans if len(_torques(trace, span, spindle)) > 1]
    if spindle is None or not turned:
        return None
    figure, axis = plt.subplots(figsize=(_WIDTH, 2.8))
    angles = np.array([sample.measured[spindle] for sample in trace.motion]) / math.tau
    zero = angles[samples_of(trace, turned[0])][0]
    peak = 0.0
    shown = 0
    for span in turned:
        torque = _torques(trace, span, spindle)
        angle = angles[samples_of(trace, span)] - zero
        if float(np.abs(torque).max()) < _NO_TORQUE * limit:
            continue  # the spindle goes along with the arm
        color = SERIES[shown % len(SERIES)]
        axis.plot(angle, torque, color=color, marker=".", markersize=2.5, label=span.stage)
        peak, shown = max(peak, float(torque.max())), shown + 1
    if not shown:
        plt.close(figure)
        return None
    axis.axhspan(limit * (1 - _TOLERANCE), limit * (1 + _TOLERANCE), color=GRAY, alpha=0.15)
    axis.axhline(limit, color=GRAY, linestyle=":", linewidth=1.2)
    axis.set(xlabel="turns of the spindle", ylabel="torque sent [N m]")
    axis.grid(visible=True)
    axis.legend(ncols=2)
    alt = (
        f"Torque over turns of the spindle, a color a stage: it rises to {peak:.2f} N m of "
        f"{limit:g} N m commanded."
    )
    return Plot("torque_angle", f"Cycle {trace.index}: torque over turn angle", alt, figure)


def _torques(trace: CycleTrace, span: StageSpan, spindle: int | None) -> FloatArray:
    """Return the spindle's torques in a stage; empty where none were sent."""
    own = trace.motion[samples_of(trace, span)]
    if spindle is None or any(len(sample.command) <= spindle for sample in own):
        return np.zeros(0)
    return np.array([sample.command[spindle] for sample in own])


def _search_path(trace: CycleTrace, spans: list[StageSpan], tip: FloatArray | None) -> Plot | None:
    if tip is None or not trace.placements or len(tip) != len(trace.motion):
        return None
    target = trace.placements[-1]
    figure, axis = plt.subplots(figsize=(3.6, 3.4))
    length = 0.0
    for stage, color in (("contact", GRAY), ("search", BLUE), ("engage", ORANGE)):
        for number, span in enumerate(s for s in spans if s.stage == stage):
            way = 1e3 * (tip[samples_of(trace, span), :2] - (target.x, target.y))
            if not len(way):
                continue
            label = stage if number == 0 else None
            axis.plot(way[:, 0], way[:, 1], color=color, marker=".", markersize=2.5, label=label)
            if stage == "search":
                length += float(np.linalg.norm(np.diff(way, axis=0), axis=1).sum())
    if not axis.lines:
        plt.close(figure)
        return None
    axis.plot([0.0], [0.0], "+", color=INK, markersize=12, markeredgewidth=1.4)
    axis.set(xlabel="x [mm]", ylabel="y [mm]", aspect="equal")
    axis.margins(0.15)
    axis.grid(visible=True)
    axis.legend(fontsize=7)
    alt = f"The tip's way seen from above, around the screw's true axis: {length:.1f} mm of search."
    return Plot("search_path", f"Cycle {trace.index}: the search, seen from above", alt, figure)


def _screws(run: RunRecord, limit: float) -> Plot | None:
    done = [cycle for cycle in run.cycles if math.isfinite(cycle.final_torque)]
    if not done:
        return None
    index = [cycle.index for cycle in done]
    figure, (upper, middle, lower) = plt.subplots(3, 1, figsize=(_WIDTH, 4.4), sharex=True)
    upper.axhspan(limit * (1 - _TOLERANCE), limit * (1 + _TOLERANCE), color=GRAY, alpha=0.15)
    upper.axhline(limit, color=GRAY, linestyle=":", linewidth=1.2)
    upper.plot(index, [cycle.final_torque for cycle in done], "o", color=BLUE, markersize=4)
    upper.set(ylabel="torque [N m]")
    upper.margins(y=0.1)
    middle.plot(index, [1e3 * cycle.advance for cycle in done], "o", color=BLUE, markersize=4)
    middle.set(ylabel="advance [mm]")
    middle.set_ylim(bottom=0.0)
    lower.bar(index, [1e3 * cycle.search for cycle in done], color=BLUE)
    lower.set(xlabel="cycle", ylabel="search [mm]")
    lower.xaxis.set_major_locator(MaxNLocator(integer=True))
    lower.set_xlim(0.3, len(run.cycles) + 0.7)
    torque = [cycle.final_torque for cycle in done]
    search = [1e3 * cycle.search for cycle in done]
    alt = (
        f"Final torque of {len(done)} screws, {min(torque):.2f} to {max(torque):.2f} N m; how far "
        f"they went in; and their searches, {min(search):.1f} to {max(search):.1f} mm."
    )
    return Plot("screws", "Torque, advance and search of every screw", alt, figure)


def _name(trace: CycleTrace, joint: int) -> str:
    return trace.joints[joint] if joint < len(trace.joints) else str(joint)


def _shade(axes: tuple[Any, ...], trace: CycleTrace, spans: list[StageSpan]) -> None:
    """Show the stages behind what is drawn over time, their names above the first axis."""
    zero = origin(trace, spans)
    for number, span in enumerate(spans):
        begin, end = span.begin_ns * 1e-9 - zero, span.end_ns * 1e-9 - zero
        for axis in axes:
            axis.axvspan(begin, end, color=GRAY, alpha=0.14 if number % 2 else 0.04, linewidth=0)
        axes[0].annotate(
            span.stage,
            ((begin + end) / 2, 1.0),
            (0, 3),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            rotation=35,
            fontsize=7,
            color=MUTED,
            rotation_mode="anchor",
        )
