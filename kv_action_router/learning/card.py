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

{frames} frames of {scenes} random scenes, rendered by the simulation in equal parts of its cells
({cells}), seed {seed}; labels are the simulator's own: pose of the target's body, and which pixels
show it. Surfaces, things on the table, decoys (the same shape in another color, the same color in
another shape or size), light, arm, what stands in the way, how the target leans, the camera's place
(known to the encoder), exposure, blur, noise and holes in the depth image are random. AdamW,
deterministic; passes over the frames: {epochs}.

## Held-out error

On {held_out} frames of random scenes of each cell that no training has seen, and on {plain} of the
cell's own scene; the segmentation looked at the same frames. An estimate counts where at least
{hidden:.0%} of the face is visible.

{errors_head}
{errors}

The *axis* is that of the face, from its depth; in two of five random frames the target leans, by up
to {lean:.0f} degrees. {turns} A *guess* is an estimate more than 10 mm off; *of nothing* is one of
these where no target was visible. {own_scene}

Share of the targets that got an estimate, by the share of the face that was visible:

| cell | perception | {classes} |
|---|---|{rules}|
{seen}

Of the network's estimates in random scenes {inside} have the target inside their ellipsoid of 95 %.
One image takes {ratio:.1f} times the processor time of the segmentation, whose scene slice comes on
top, while the network's is included.

## Likeness against distance

Cosines between two looks at one random scene, in different light, whose targets lie this far
apart:

{likeness}

Scene slices of the same scene, with target, arm and light changed: {same_low:.3f} (5 %),
{same:.3f} (median); of other scenes: {other:.3f} (median), {other_high:.3f} (95 %).

## Limits

Trained on rendered pictures only; it has not seen a real camera's. A face that leans by more than
11 degrees is refused. A camera that was moved after its calibration is not seen by the network but
by the encoder's own check of the work surface (`docs/perception.md`).
"""
_NO_TURNS = "Turns about that axis cannot be seen, the face is round, and no task asks for them."
_OWN_SCENE = (
    "The cell's own scene may hold an error of the camera's place that both perceptions share: "
    "{offsets}."
)


def write_json(folder: Path, card: Mapping[str, Any]) -> None:
    """Write the ``card.json`` of a checkpoint's folder."""
    (folder / CARD).write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def write(path: Path, card: Mapping[str, Any], encoder_id: str) -> None:
    """Write the model card of a ``card.json`` that holds ``training`` and ``held_out``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(card, encoder_id), encoding="utf-8")


def render(card: Mapping[str, Any], encoder_id: str) -> str:
    """Return the model card's text."""
    numbers, held_out, training = card["numbers"], card["held_out"], card["training"]
    fold = numbers["fold"]
    cells, described = held_out["cells"], held_out["likeness"]["scene"]
    first = next(iter(cells.values()))
    classes = list(first["random"]["network"]["seen_share_from_visible"])
    return _TEXT.format(
        name=card["target"],
        encoder_id=encoder_id,
        files=", ".join(
            f"`{name}.onnx` (sha256 {file['sha256'][:12]}…)" for name, file in card["files"].items()
        ),
        weights=f"{_weights(card):,}",
        window=1e3 * numbers["window"],
        heading=f"turns by 1/{fold} look the same" if fold else "none: round",
        likely=numbers["likely_minimum"],
        present=numbers["present_minimum"],
        place_scale=numbers["place_scale"],
        heading_scale=numbers["heading_scale"],
        frames=f"{training['frames']:,}",
        scenes=f"{training['scenes']:,}",
        cells=", ".join(f"`{name}`" for name in training["cells"]),
        seed=training["seed"],
        epochs=", ".join(f"{count} ({name})" for name, count in training["epochs"].items()),
        held_out=first["random"]["network"]["frames"],
        plain=first["plain"]["network"]["frames"],
        hidden=training["hidden_share"],
        errors_head=_head(fold),
        errors="\n".join(
            _errors(f"{cell}, {where}", who, figures, fold)
            for cell, kinds in cells.items()
            for where, both in kinds.items()
            for who, figures in both.items()
        ),
        lean=training["largest_lean_degrees"],
        turns="" if fold else _NO_TURNS,
        own_scene=_OWN_SCENE.format(
            offsets=", ".join(
                f"{value:.1f} mm in `{cell}`" for cell, value in training["camera_error_mm"].items()
            )
        ),
        classes=" | ".join(f"{100 * float(c):.0f} % and more" for c in classes),
        rules="|".join("---" for _ in classes),
        seen="\n".join(
            f"| {cell} | {who} | " + " | ".join(
                _number(figures["seen_share_from_visible"][c], 2) for c in classes) + " |"
            for cell, kinds in cells.items()
            for who, figures in kinds["random"].items()
        ),
        inside=" and ".join(
            f"{_percent(kinds['random']['network']['inside_95_percent'])} (`{cell}`)"
            for cell, kinds in cells.items()
        ),
        ratio=held_out["time_over_segmentation"],
        likeness=likeness_table(held_out["likeness"]),
        same_low=described["same"]["p05"],
        same=described["same"]["p50"],
        other=described["other"]["p50"],
        other_high=described["other"]["p95"],
    )  # fmt: skip


def likeness_table(likeness: Mapping[str, Any]) -> str:
    """Return how alike keys are whose targets lie apart, as lines of a table."""
    rows = [
        "| distance [mm] | target slice | scene slice | key, body slice equal |",
        "|---|---|---|---|",
    ]
    for row in likeness["by_distance"]:
        values = [_number(row[name], 4) for name in ("target", "scene", "key_with_equal_body")]
        rows.append(f"| {row['distance_mm']:g} | " + " | ".join(values) + " |")
    return "\n".join(rows)


def _head(fold: int) -> str:
    names = ["cell, scenes", "perception", "estimates", "error p50 [mm]", "p95", "p99", "max"]
    names += ["axis p50 [degrees]", "p95", *(["heading p95"] if fold else [])]
    names += ["guesses", "of nothing"]
    return "| " + " | ".join(names) + " |\n|" + "---|" * len(names)


def _errors(where: str, who: str, figures: Mapping[str, Any], fold: int) -> str:
    error, axis = figures["error_mm"], figures["axis_degrees"]
    cells = [
        where,
        who,
        str(figures["estimates"]),
        *(_number(error[key], 2) for key in ("p50", "p95", "p99", "max")),
        *(_number(axis[key], 2) for key in ("p50", "p95")),
    ]
    if fold:
        cells.append(_number(figures["heading_degrees"]["p95"], 2))
    cells += [str(figures["guesses"]), f"{figures['false']} of {figures['nothing_to_see']}"]
    return "| " + " | ".join(cells) + " |"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _weights(card: Mapping[str, Any]) -> int:
    shapes = [shape for file in card["files"].values() for shape in file["tensors"].values()]
    return sum(map(_size, shapes))


def _size(shape: Sequence[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
