"""Bad stamps are named once a sample, and images are paired in spite of them."""

import re

import pytest
from encoding_builders import MS, SECOND

from kv_action_router.encoding.stamps import Frame, ImagePairer, StampCheck

WALL = 1_700_000_000 * SECOND
PERIOD = 33 * MS


def check(*stamps):
    made = StampCheck(5.0)
    return [made.check(stamp, WALL + i * PERIOD) for i, stamp in enumerate(stamps)]


def test_good_stamps_pass():
    assert check(WALL, WALL + PERIOD, WALL + 2 * PERIOD) == ["", "", ""]


@pytest.mark.parametrize(
    ("stamps", "says"),
    [
        ((0, 0), "zero"),
        ((WALL, WALL), "same as before"),
        ((WALL, WALL - SECOND), "back by 1.000 s"),
        ((WALL, WALL + 6 * 365 * 86400 * SECOND), r"\+1892159\d\d"),
        ((WALL, WALL + PERIOD, WALL - 100 * SECOND), "back"),
    ],
)
def test_bad_stamps_are_named(stamps, says):
    assert re.search(says, check(*stamps)[-1])


def test_window_starts_anew_after_a_backward_step():
    answers = check(WALL, WALL - SECOND, WALL - SECOND + PERIOD)
    assert answers[1]
    assert answers[2] == ""


def frame(name, stamp, receipt, ordered=True):
    return Frame(name, stamp, stamp, receipt, receipt - MS, ordered)


def pairer():
    return ImagePairer(0.010, 0.020)


def test_pairs_by_stamp():
    made = pairer()
    made.add_depth(frame("d1", WALL, SECOND))
    made.add_depth(frame("d2", WALL + PERIOD, SECOND + PERIOD))
    made.add_color(frame("c1", WALL + 2 * MS, SECOND + PERIOD))
    color, depth = made.take()
    assert (color.image, depth.image) == ("c1", "d1")
    assert made.take() is None
    made.add_color(frame("c2", WALL + PERIOD, SECOND + PERIOD))
    assert made.take()[1].image == "d2"


def test_depth_that_comes_later_is_waited_for():
    made = pairer()
    made.add_color(frame("c1", WALL, SECOND))
    assert made.take() is None
    made.add_depth(frame("d1", WALL, SECOND + 5 * MS))
    assert made.take()[1].image == "d1"


def test_a_depth_image_is_used_once_and_an_older_one_never():
    made = pairer()
    made.add_depth(frame("d1", WALL, SECOND))
    made.add_color(frame("c1", WALL, SECOND))
    assert made.take() is not None
    made.add_color(frame("c2", WALL + 5 * MS, SECOND))
    assert made.take() is None


def test_given_up_images_are_counted_until_one_pairs():
    made = pairer()
    for index in range(4):
        made.add_color(frame("c", WALL + index * PERIOD, SECOND + index * PERIOD))
        assert made.take() is None
    assert made.unpaired == 3
    made.add_depth(frame("d", WALL + 3 * PERIOD, SECOND + 3 * PERIOD))
    assert made.take() is not None
    assert made.unpaired == 0


@pytest.mark.parametrize("kind", ["zero", "duplicate", "backward", "years", "two clocks"])
def test_pairs_whatever_the_stamps(kind):
    made, color_check, depth_check = pairer(), StampCheck(5.0), StampCheck(5.0)
    years = 6 * 365 * 86400 * SECOND
    pairs = 0
    for index in range(6):
        true = WALL + index * PERIOD
        color, depth = {
            "zero": (0, 0),
            "duplicate": (WALL, WALL),
            "backward": (WALL - index * PERIOD, WALL - index * PERIOD),
            "years": (true + years, true + years),
            "two clocks": (true + years, true),
        }[kind]
        receipt = SECOND + index * PERIOD
        depth_check.check(depth, true)
        made.add_depth(frame(f"d{index}", depth, receipt, depth_check.ordered))
        color_check.check(color, true)
        made.add_color(frame(f"c{index}", color, receipt + 2 * MS, color_check.ordered))
        pair = made.take()
        if pair is not None:
            assert pair[0].image[1:] == pair[1].image[1:]
            pairs += 1
    assert pairs >= 5  # at most the first one, which says nothing yet, may be lost
