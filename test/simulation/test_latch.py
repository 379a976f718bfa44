"""A plug in its socket: it moves only when it must, and a latch that has snapped holds."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kv_action_router.errors import ConfigError
from kv_action_router.simulation.latch import Socket, SocketConfig

STEP = 0.002  # [s]
CONFIG = SocketConfig()
FORCES = st.lists(st.floats(-50.0, 50.0), max_size=20)


def pushed(config: SocketConfig, forces: list[float]) -> Socket:
    socket = Socket(config)
    for force in forces:
        socket.act(force, STEP)
    return socket


def home(config: SocketConfig = CONFIG) -> Socket:
    """Return a socket whose plug was pushed to its end stop and let go of."""
    return pushed(config, [30.0] * 60 + [0.0] * 20)


@settings(max_examples=40)
@given(FORCES, st.floats(-50.0, 50.0))
def test_a_plug_moves_as_it_is_pushed_and_not_below_what_holds_it(
    forces: list[float], force: float
) -> None:
    socket = pushed(CONFIG, forces)
    depth, resistance, holding = socket.depth, socket.resistance, socket.holding
    socket.act(force, STEP)
    assert socket.depth >= 0.0
    if force > resistance:
        assert socket.depth > depth
    elif -force > holding:
        assert socket.depth <= depth
    else:
        assert socket.depth == depth


@settings(max_examples=40)
@given(FORCES, FORCES)
def test_a_latch_that_has_snapped_holds_whatever_pulls_with_less(
    before: list[float], after: list[float]
) -> None:
    socket = home()
    assert socket.latched
    assert socket.depth == pytest.approx(CONFIG.travel, abs=2e-4)
    for force in before + after:
        socket.act(force, STEP)  # retention is above all of them
    assert socket.latched
    assert socket.depth >= CONFIG.travel - 1e-12


@settings(max_examples=40)
@given(FORCES)
def test_a_worn_latch_never_holds(forces: list[float]) -> None:
    worn = dataclasses.replace(CONFIG, catches=False)
    socket = home(worn)
    assert not socket.latched
    assert socket.holding <= worn.friction
    assert not pushed(worn, forces).latched


def test_the_force_rises_to_the_latch_falls_and_rises_again() -> None:
    socket = Socket(CONFIG)
    needed = []
    while socket.depth < CONFIG.travel + 5e-4:
        needed.append(socket.resistance)
        socket.act(socket.resistance + 1.0, STEP)
    peak = max(range(len(needed) // 2), key=needed.__getitem__)
    assert needed[0] == CONFIG.entry_force
    assert needed[peak] == pytest.approx(CONFIG.latch_force, rel=0.05)
    assert min(needed[peak:]) == CONFIG.friction
    assert needed[-1] > CONFIG.latch_force / 2.0


def test_more_than_it_retains_tears_a_latched_plug_out() -> None:
    socket = home()
    for _ in range(2):  # off the end stop first
        socket.act(-(CONFIG.retention + 1.0), STEP)
    assert not socket.latched


@pytest.mark.parametrize("force", [math.nan, math.inf, -math.inf])
def test_a_force_that_is_none_changes_nothing(force: float) -> None:
    socket = home()
    before = socket.depth, socket.latched, socket.peak_force
    socket.act(force, STEP)
    assert (socket.depth, socket.latched, socket.peak_force) == before


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"crest": 5.0e-3}, "crest"), ({"entry_force": 20.0}, "entry_force")],
)
def test_a_socket_that_cannot_be_is_refused(changes: dict[str, float], field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        dataclasses.replace(CONFIG, **changes)  # type: ignore[arg-type]
