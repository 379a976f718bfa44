"""What a task means, as a key: 128 numbers made from its text, the same on every machine.

The text is cut into words and into character trigrams of words (so that inflections stay near),
each hashed with BLAKE2 to a place and a sign. No randomness of the process takes part.
"""

from __future__ import annotations

import re
import unicodedata
from hashlib import blake2b

import numpy as np

from kv_action_router.contracts import INTENT_SIZE, Float32Array
from kv_action_router.errors import TaskDefinitionError

WORD_WEIGHT = 1.0
TRIGRAM_WEIGHT = 0.5
LONGEST_ID = 64


def intent_key(text: str) -> Float32Array:
    """Return the unit vector (128,) of an intent's text.

    Raises:
        TaskDefinitionError: the text has no letter and no digit.
    """
    key = np.zeros(INTENT_SIZE)
    for word in _words(text):
        _add(key, f"w:{word}", WORD_WEIGHT)
        padded = f"^{word}$"
        for start in range(len(padded) - 2):
            _add(key, f"t:{padded[start : start + 3]}", TRIGRAM_WEIGHT)
    norm = float(np.linalg.norm(key))
    if norm == 0.0:
        raise TaskDefinitionError(f"intent must hold a letter or digit, got {text!r}")
    return np.asarray(key / norm, dtype=np.float32)


def intent_id(text: str) -> str:
    """Return a readable identifier of an intent: its words, joined; distinct texts stay distinct.

    Raises:
        TaskDefinitionError: the text has no letter and no digit.
    """
    words = _words(text)
    if not words:
        raise TaskDefinitionError(f"intent must hold a letter or digit, got {text!r}")
    slug = "_".join(words)
    if len(slug) <= LONGEST_ID:
        return slug
    return f"{slug[: LONGEST_ID - 9]}_{blake2b(slug.encode(), digest_size=4).hexdigest()}"


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    return re.findall(r"[^\W_]+(?:\.[^\W_]+)*", plain)


def _add(key: np.ndarray, feature: str, weight: float) -> None:
    digest = blake2b(feature.encode(), digest_size=8).digest()
    place = int.from_bytes(digest[:4], "little") % INTENT_SIZE
    key[place] += weight if digest[4] & 1 else -weight
