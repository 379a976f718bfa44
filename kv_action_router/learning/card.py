"""The model card of a checkpoint, for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kv_action_router.encoding.network.checkpoint import CARD

_TEXT = """# Perception network: {name}

Finds the target of the kind `{name}` in RGB-D images and describes the surroundings
(`docs/perception.md`). Written by `make train-encoder`; the figures are those of `make evaluate` at
that time.

## What it is

| | |
|---|---|
| encoder id | `{encoder_id}` |
| files | {files} |
| weights | {weights} numbers, float32 |
| close-up | {window:.0f} mm at the target |
| heading | {heading} |
| thresholds | place {likely:.2f}, target {present:.2f} |
| standard deviations are multiplied by | {place_scale:.2f} (place), {heading_scale:.2f} (heading) |

## Data and training

{frames} frames of {scenes} random scenes, rendered by the simulation, seed {seed}; labels are the
simulator's own: pose of the target's body, and which pixels show it. Surfaces, things on the
table, decoys (the same shape in another color, the same color in another shape or size), light,
arm, what stands in the way, the camera's place (known to the encoder), exposure, blur, noise and
holes in the depth image are random. {epochs} passes, AdamW, deterministic.

## Held-out error

On {held_out} frames of random scenes that no training has seen, and on {plain} of the
simulation's own scene; the segmentation looked at the same frames. An estimate counts where at
least {hidden:.0%} of the face is visible.

| | estimates | error p50 [mm] | p95 | p99 | max | heading p95 [degrees] | guesses | of nothing |
|---|---|---|---|---|---|---|---|---|
{errors}

A *guess* is an estimate more than 10 mm off; *of nothing* is one of these where no target was
visible. Share of the targets that got an estimate, by the share of the face that was visible:

| | {classes} |
|---|{rules}|
{seen}

Of the network's estimates {inside:.1%} have the target inside their ellipsoid of 95 % (random
scenes). One image takes {ratio:.1f} times the processor time of the segmentation, whose scene slice
comes on top, while the network's is included.

## Likeness against distance

Cosines between two looks at one random scene, in different light, whose targets lie this far
apart:

| distance [mm] | target slice | scene slice | key, body slice equal |
|---|---|---|---|
{likeness}

Scene slices of the same scene, with target, arm and light changed: {same_low:.3f} (5 %),
{same:.3f} (median); of other scenes: {other:.3f} (median), {other_high:.3f} (95 %).

## Limits

Trained on rendered pictures only; it has not seen a real camera's. The face is taken as level. A
camera that was moved after its calibration is not seen by the network but by the encoder's own
check of the work surface (`docs/perception.md`)."""


def write_json(folder: Path, card: Mapping[str, Any]) -> None:
    """Write the ``card.json`` of a checkpoint's folder."""
    (folder / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def write(path: Path, card: Mapping[str, Any], encoder_id: str) -> None:
    """Write the model card of a ``card.json`` that holds ``training`` and ``held_out``."""
    numbers, held_out, training = card["numbers"], card["held_out"], card["training"]
    random, plain, likeness = held_out["random"], held_out["plain"], held_out["likeness"]
    weights = sum(
        _size(shape) for file in card["files"].values() for shape in file["tensors"].values()
    )
    classes = list(random["network"]["seen_share_from_visible"])
    text = _TEXT.format(
        name=card["target"],
        encoder_id=encoder_id,
        files=", ".join(f"`{name}.onnx` (sha256 {f['sha256'][:12]}…)" for name, f in
                        card["files"].items()),
        weights=f"{weights:,}",
        window=1e3 * numbers["window"],
        heading=f"turns by 1/{numbers['fold']} look the same" if numbers["fold"] else "none: round",
        likely=numbers["likely_minimum"],
        present=numbers["present_minimum"],
        place_scale=numbers["place_scale"],
        heading_scale=numbers["heading_scale"],
        frames=f"{training['frames']:,}",
        scenes=f"{training['scenes']:,}",
        seed=training["seed"],
        epochs=training["epochs"],
        held_out=random["network"]["frames"],
        plain=plain["network"]["frames"],
        hidden=0.08,
        errors="\n".join(
            _errors(f"{who}, {where}", figures)
            for where, both in (("random scenes", random), ("own scene", plain))
            for who, figures in both.items()
        ),
        classes=" | ".join(f"{100 * float(c):.0f} % and more" for c in classes),
        rules="|".join("---" for _ in classes),
        seen="\n".join(
            f"| {who} | " + " | ".join(
                _number(f["seen_share_from_visible"][c], 2) for c in classes) + " |"
            for who, f in random.items()
        ),
        inside=random["network"]["inside_95_percent"],
        ratio=held_out["time_over_segmentation"],
        likeness="\n".join(_row(row) for row in likeness["by_distance"]),
        same_low=likeness["scene"]["same"]["p05"],
        same=likeness["scene"]["same"]["p50"],
        other=likeness["scene"]["other"]["p50"],
        other_high=likeness["scene"]["other"]["p95"],
    )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _errors(name: str, figures: Mapping[str, Any]) -> str:
    error = figures["error_mm"]
    cells = [
        str(figures["estimates"]),
        *(_number(error[k], 2) for k in ("p50", "p95", "p99", "max")),
    ]
    cells.append(_number(figures["heading_degrees"]["p95"], 2))
    cells += [str(figures["guesses"]), f"{figures['false']} of {figures['nothing_to_see']}"]
    return f"| {name} | " + " | ".join(cells) + " |"


def _row(row: Mapping[str, Any]) -> str:
    values = [_number(row[name], 4) for name in ("target", "scene", "key_with_equal_body")]
    return f"| {row['distance_mm']:g} | " + " | ".join(values) + " |"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _size(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
