"""What the benchmark of the slow policy measures."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from policy import Watch

DT = 0.002


def test_jerk_is_that_of_the_set_points_from_the_first_one_on() -> None:
    """A set-point is at zero until the injector holds the arm; that is no motion of it."""
    set_point = SimpleNamespace(position=[0.0, 0.0], last_ns=0)
    stack = SimpleNamespace(awaiting=False)
    episode = SimpleNamespace(
        injection=SimpleNamespace(controller=SimpleNamespace(set_point=set_point)),
        synthesis=SimpleNamespace(synthesizer=SimpleNamespace(tasks=SimpleNamespace(stack=stack))),
        robot=SimpleNamespace(plant=SimpleNamespace(dt=DT)),
    )
    watch = Watch(episode)
    for tick in range(50):
        episode.on_step(SimpleNamespace(now_ns=tick))
        set_point.last_ns = tick + 1
        time = DT * tick
        set_point.position = [1.5 + 30.0 * time**3 / 6, -2.0 - 30.0 * time**3 / 6]
    assert watch.jerk() == pytest.approx(30.0, rel=1e-4)
