"""Figures of an evaluation: what counts as an error, a guess, an estimate of nothing."""

import dataclasses

import numpy as np
import pytest

from kv_action_router.cli.evaluate_encoder import bounds, table
from kv_action_router.contracts import Pose, TargetEstimate
from kv_action_router.learning import evaluation
from kv_action_router.learning.cells import cell
from kv_action_router.learning.evaluation import Tally, backend, compare, likeness
from kv_action_router.reporting.bounds import broken

PLACE = np.array([0.46, 0.03, 0.010])


@pytest.fixture
def frame(maker):
    return maker.look(maker.plain_scene(), PLACE, 0.0, maker.home)


def estimate(offset, deviation=1e-3):
    return TargetEstimate(Pose(PLACE + np.array([offset, 0.0, 0.0])), np.eye(6) * deviation**2)


def taken(*answers):
    tally = Tally.empty()
    for frame, found in answers:
        tally.take(frame, cell("touch"), found, 1e-3)
    return tally.figures()


def test_errors_and_coverage(frame):
    figures = taken((frame, estimate(0.001)), (frame, estimate(0.004)), (frame, None))
    assert figures["error_mm"]["max"] == pytest.approx(4.0)
    assert figures["estimates"] == 2
    assert figures["inside_95_percent"] == 0.5  # 4 standard deviations are outside
    assert figures["seen_share_from_visible"]["0.90"] == pytest.approx(2 / 3)
    assert (figures["guesses"], figures["false"], figures["nothing_to_see"]) == (0, 0, 0)
    assert figures["heading_degrees"]["p95"] is None  # a disc has none


def test_guesses_and_estimates_of_nothing(frame):
    nothing = dataclasses.replace(frame, visible=0.0, position=np.full(3, np.nan))
    figures = taken((frame, estimate(0.02)), (nothing, estimate(0.0)), (nothing, None))
    assert (figures["guesses"], figures["false"], figures["nothing_to_see"]) == (2, 1, 2)
    assert figures["estimates"] == 1


def test_heading_counts_turns_that_look_the_same_as_one(frame):
    turned = dataclasses.replace(cell("touch"), fold=6)
    tally = Tally.empty()
    found = dataclasses.replace(
        estimate(0.0), pose=Pose(PLACE, np.array([0.0, 0.0, np.sin(0.525), np.cos(0.525)]))
    )  # 1.05 rad: a sixth of a turn but for 0.0028
    tally.take(frame, turned, found, 0.0)
    assert tally.figures()["heading_degrees"]["max"] == pytest.approx(0.16, abs=0.02)


def test_whole_evaluation_of_the_segmentation(maker):
    target = cell("touch")
    make = backend("segmentation", "", target)
    report = compare(maker, target, {"network": make}, scenes=1)
    assert report["random"]["network"]["frames"] == report["plain"]["network"]["frames"] == 4
    assert report["plain"]["network"]["error_mm"]["max"] < 1.0
    assert table(report).row_count == 2


def test_likeness_falls_with_distance(maker, monkeypatch):
    for name, value in (("DISTANCES", (0.0, 0.1)), ("_PAIRS", 3), ("_SCENES", 2)):
        monkeypatch.setattr(evaluation, name, value)
    report = likeness(maker, backend("segmentation", "", cell("touch")))
    known = [row["target"] for row in report["by_distance"] if row["target"] is not None]
    assert len(known) == 2
    assert known[0] > 0.9999
    assert known[1] < 0.99


def figures(p95, false=0):
    own = {"error_mm": {"p95": p95}, "false": false, "nothing_to_see": 100}
    return {"random": {"network": own}, "plain": {"network": own}}


def test_bounds_are_the_limits_and_the_model_card():
    card = {"training": {"cell": "touch"}, "held_out": figures(1.0)}
    judged = bounds(card, "touch", fold=0)
    assert broken(figures(1.05), judged, essential_only=False) == []
    (worse,) = broken(figures(1.2), judged, essential_only=False)
    assert "against the model card" in worse
    assert len(broken(figures(3.1), judged, essential_only=False)) == 3
    (of_nothing,) = broken(figures(1.0, false=2), judged, essential_only=False)
    assert "of nothing" in of_nothing
    assert broken(figures(2.9), bounds(card, "screw", fold=0), essential_only=False) == []
