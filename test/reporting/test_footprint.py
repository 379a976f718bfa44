"""Memory of an object with all that it alone leads to."""

from __future__ import annotations

import numpy as np
import pytest

from kv_action_router.reporting.footprint import footprint


class Holder:
    """Holds things."""

    def __init__(self, **held: object) -> None:
        self.__dict__.update(held)

    def method(self) -> None:
        """Be bound."""


def test_it_grows_with_what_is_held_and_only_then() -> None:
    holder = Holder(rows=[np.zeros(1000)])
    before = footprint(holder)
    assert before > 8000
    holder.rows.append(np.zeros(500))
    assert footprint(holder) - before == pytest.approx(4000, rel=0.1)


def test_what_is_held_twice_counts_once() -> None:
    array = np.zeros(1000)
    once = footprint([array])
    assert footprint([array, array]) - once < 100
    ring: list[object] = [array]
    ring.append(ring)
    assert footprint(ring) - once < 100


def test_a_view_counts_with_what_it_looks_at() -> None:
    assert footprint([np.zeros(1000)[10:]]) > 8000


def test_others_and_code_do_not_count() -> None:
    other = Holder(rows=np.zeros(1000))
    assert footprint([other], without=[other]) < 100
    assert footprint([other.method, Holder, np]) < 200
