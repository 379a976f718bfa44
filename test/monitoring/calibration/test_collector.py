"""What counts as a row without load, and what a row holds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from monitoring_builders import JOINTS, MS, feedback, task_state

from kv_action_router.contracts import DriveSample, ExecutionFeedback, InjectorState
from kv_action_router.monitoring.calibration.collector import NoLoadCollector
from kv_action_router.monitoring.calibration.rows import Column

NAN = float("nan")
EMPTY = np.zeros(0)


def motion(ms: float, **changed) -> ExecutionFeedback:
    """Return a feedback of a joint that speeds up at 2 rad/s^2 while the other stands."""
    t = ms * 1e-3
    told = feedback(ms, position=(t * t, 0.5), velocity=(2.0 * t, 0.0))
    return dataclasses.replace(told, **changed)


def drives(ms: float, **changed) -> DriveSample:
    sample = DriveSample(
        JOINTS,
        np.array([30.0, 40.0]),
        np.array([1.5, -0.5]),
        np.full(2, 9.0),
        EMPTY,
        EMPTY,
        np.zeros(2, dtype=np.bool_),
        int(ms * MS),
        np.array([3.0, NAN]),
    )
    return dataclasses.replace(sample, **changed)


def collected(samples: list[object], force: float = 0.0, joints=JOINTS) -> np.ndarray:
    collector = NoLoadCollector(joints, contact_force=4.0)
    for sample in samples:
        collector.take([sample], force)
    return collector.rows()


def course(sample: DriveSample, **changed) -> list[object]:
    """Return a drive sample with the motion around it."""
    times = (100, 110, 120, 130)
    return [
        motion(times[0], **changed), motion(times[1], **changed), sample,
        motion(times[2], **changed), motion(times[3], **changed),
    ]  # fmt: skip


@pytest.mark.parametrize("ms", [110, 113, 115, 119.9])
def test_a_row_is_the_motion_at_the_instant_of_the_drives(ms):
    (row,) = collected(course(drives(ms)))
    t = ms * 1e-3
    assert row[Column.VELOCITY].tolist() == pytest.approx([2.0 * t, 0.0])
    assert row[Column.POSITION][0] == pytest.approx(t * t, abs=1e-4)
    assert row[Column.ACCELERATION].tolist() == pytest.approx([2.0, 0.0])
    assert row[Column.CURRENT].tolist() == [1.5, -0.5]
    assert row[Column.TEMPERATURE].tolist() == [30.0, 40.0]
    assert row[Column.VOLTAGE][0] == 3.0
    assert np.isnan(row[Column.VOLTAGE][1])


def test_rows_come_in_the_order_of_the_arm_and_other_drives_are_left_out():
    swapped = (JOINTS[1], "gripper", JOINTS[0])
    sample = drives(
        113,
        names=swapped,
        temperature=np.array([40.0, 0.0, 30.0]),
        current=np.array([-0.5, 9.0, 1.5]),
        voltage=EMPTY,
    )
    (row,) = collected(course(sample))
    assert row[Column.CURRENT].tolist() == [1.5, -0.5]
    assert np.isnan(row[Column.VOLTAGE]).all()


@pytest.mark.parametrize(
    "samples",
    [
        course(drives(113, braked=np.array([False, True]))),
        course(drives(113, current=EMPTY)),
        course(drives(113, current=np.array([1.0, NAN]))),
        course(drives(113, names=("elbow", "gripper"))),
        course(drives(90)),
        course(drives(113), state=InjectorState.FAIL_SAFE),
        course(drives(113), state=InjectorState.STOPPED),
        course(drives(113), velocity=np.array([0.01, 0.02])),
        course(drives(113), velocity=np.array([NAN, NAN])),
        course(drives(113))[:4],  # the motion behind it is not known yet
    ],
    ids=[
        "braked", "no current", "current NaN", "a joint's drive is missing", "too old",
        "fail-safe", "stopped", "stands", "no velocity", "too early",
    ],
)  # fmt: skip
def test_what_tells_nothing_of_a_motion_without_load_is_left_out(samples):
    assert len(collected(samples)) == 0


def test_a_touch_is_seen_by_its_force():
    assert len(collected(course(drives(113)), force=3.9)) == 1
    assert len(collected(course(drives(113)), force=4.0)) == 0


def test_without_a_measured_force_the_stage_says_whether_it_touches():
    assert len(collected([task_state(allowed_contact=""), *course(drives(113))], force=NAN)) == 1
    touching = task_state(allowed_contact="target")
    assert len(collected([touching, *course(drives(113))], force=NAN)) == 0
    assert len(collected([touching, *course(drives(113))], force=0.5)) == 1


def test_a_gap_or_a_clock_set_back_joins_nothing():
    gap = [motion(100), motion(110), drives(113), motion(200), motion(210), motion(220)]
    assert len(collected(gap)) == 0
    back = [motion(100), motion(110), drives(113), motion(50), motion(60), motion(70), motion(80)]
    assert len(collected(back)) == 0


def test_an_event_of_the_same_tick_is_no_second_motion():
    samples = course(drives(113))
    (row,) = collected([samples[0], samples[0], *samples[1:], samples[4]])
    assert np.isfinite(row[: Column.VOLTAGE]).all()


def test_rows_beyond_the_window_go():
    collector = NoLoadCollector(JOINTS, contact_force=4.0, window=10.0)
    seen = []
    for second in range(40):
        collector.take(
            [
                dataclasses.replace(
                    sample,
                    **{
                        name: getattr(sample, name) + second * 1000 * MS
                        for name in ("monotonic_ns", "receipt_ns")
                        if hasattr(sample, name)
                    },
                )
                for sample in course(drives(113, temperature=np.full(2, float(second))))
            ],
            0.0,
        )
        ages = second - collector.rows()[:, Column.TEMPERATURE, 0]
        seen.append(len(ages))
        assert ages.max() < 10.0
    assert min(seen[10:]) >= 5


def test_activation_forgets_what_is_half_known_and_keeps_the_rows():
    collector = NoLoadCollector(JOINTS, contact_force=4.0)
    collector.take(course(drives(113)), 0.0)
    collector.take([drives(133)], 0.0)
    collector.reset()
    collector.take([motion(140), motion(150), motion(160), motion(170)], 0.0)
    assert len(collector.rows()) == 1
    collector.clear()
    assert len(collector.rows()) == 0
    assert collector.execution_version == 1
