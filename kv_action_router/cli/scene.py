"""``kv_router remember-scene``: what the camera sees now becomes a known scene."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from kv_action_router.cli.verbs import Answer, declare, does, whole
from kv_action_router.encoding.scene_name import check_scene, load_scenes, save_scenes


def add_verb(verbs: Any) -> None:
    """Declare the verb."""
    parser = declare(verbs, "remember-scene", "remember the present scene by its look")
    parser.add_argument("name", help="of the scene; one that is known is replaced")
    parser.add_argument("--file", type=Path, required=True, help="of scenes; made where missing")
    parser.add_argument("--images", type=whole(16), default=30, help="averaged; default 30")
    does(parser, _remember, _show)


def _remember(client: Any, options: argparse.Namespace) -> Answer:
    check_scene("name", options.name)
    scenes: dict[str, Any] = {}
    if options.file.exists():
        scenes.update(load_scenes(options.file))
    seen = client.scene(max(1, options.images))
    scenes[options.name] = seen["slice"]
    save_scenes(options.file, scenes)
    return {"scene": options.name, "images": seen["images"], "known": sorted(scenes)}


def _show(answer: Answer) -> str:
    known = ", ".join(answer["known"])
    return f"{answer['scene']}: the look of {answer['images']} images (known now: {known})"
