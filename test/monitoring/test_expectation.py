"""Who should be at work now."""

from __future__ import annotations

import itertools

from kv_action_router.monitoring.expectation import PRODUCERS, TRAJECTORY_CHUNK, Expectation


def test_a_stream_flows_while_all_nodes_behind_it_are_active() -> None:
    nodes = sorted({node for producers in PRODUCERS.values() for node in producers})
    for size in range(len(nodes) + 1):
        for active in itertools.combinations(nodes, size):
            for moving in (False, True):
                expected = Expectation(active.__contains__, lambda m=moving: m, PRODUCERS)
                for topic, producers in PRODUCERS.items():
                    answer = set(producers) <= set(active)
                    if topic == TRAJECTORY_CHUNK:
                        answer = answer and moving
                    assert expected(topic) == answer


def test_an_unknown_topic_has_no_deadline() -> None:
    assert not Expectation(lambda node: True, lambda: True, PRODUCERS)("wrench")
