"""Intent keys: the same everywhere, apart for what is meant differently."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kv_action_router.errors import TaskDefinitionError
from kv_action_router.tasks.intent import LONGEST_ID, intent_id, intent_key


@given(st.text(alphabet=st.characters(categories=["L", "N"]), min_size=1, max_size=80))
def test_key_is_a_finite_unit_vector(text: str) -> None:
    key = intent_key(text)
    assert key.shape == (128,)
    assert key.dtype == np.float32
    assert np.linalg.norm(key) == pytest.approx(1.0, abs=1e-5)


def test_key_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "from kv_action_router.tasks.intent import intent_key;"
        "print(intent_key('tighten the M3 screw').tobytes().hex())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "1")
    }
    assert seen == {intent_key("tighten the M3 screw").tobytes().hex()}


def test_two_intents_before_one_door_stay_apart() -> None:
    opened, locked = intent_key("open the door"), intent_key("lock the door")
    same = intent_key("Open  the DOOR.")
    assert float(opened @ same) == pytest.approx(1.0, abs=1e-6)
    assert float(opened @ locked) < 0.8
    assert float(opened @ intent_key("pick up the red cup")) < 0.3
    assert intent_id("open the door") != intent_id("lock the door")


def test_other_scripts_and_numbers_count() -> None:
    key = intent_key("拧紧M3螺丝，扭矩3.5N·m")
    assert np.linalg.norm(key) == pytest.approx(1.0, abs=1e-5)
    assert float(key @ intent_key("拧紧M4螺丝，扭矩3.5N·m")) < 0.999
    assert intent_id("Screw 3.5 Nm") == "screw_3.5_nm"


def test_long_texts_keep_distinct_ids() -> None:
    first, second = intent_id("word " * 40 + "a"), intent_id("word " * 40 + "b")
    assert first != second
    assert len(first) <= LONGEST_ID


@pytest.mark.parametrize("text", ["", "   ", "?!"])
def test_text_without_letters_is_refused(text: str) -> None:
    with pytest.raises(TaskDefinitionError, match="letter or digit"):
        intent_key(text)
    with pytest.raises(TaskDefinitionError, match="letter or digit"):
        intent_id(text)
