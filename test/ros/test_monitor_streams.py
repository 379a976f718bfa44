"""What the monitor reads of each serialized message."""

from __future__ import annotations

import math

import pytest

rclpy = pytest.importorskip("rclpy", reason="no ROS 2 here: run `make setup`")

from geometry_msgs.msg import WrenchStamped  # noqa: E402
from rclpy.serialization import serialize_message  # noqa: E402

from kv_action_router.monitoring.samples import (  # noqa: E402
    KeySample,
    LoopSample,
    ObstacleSample,
    RatesSample,
    StampSample,
    WrenchSample,
)
from kv_action_router.msg import (  # noqa: E402
    CacheStatistics,
    DriveState,
    ExecutionFeedback,
    LayerStatistics,
    ObstacleSpheres,
    TaskKey,
)
from kv_action_router.ros import monitor_streams  # noqa: E402
from kv_action_router.ros.streams import Sample  # noqa: E402

RECEIPT_NS = 123_456


def sample(message: object) -> Sample:
    return Sample(bytes(serialize_message(message)), RECEIPT_NS, 0, 1)


def test_a_key_tells_ages_and_confidence() -> None:
    key = TaskKey(scene_age=0.03125, target_age=0.25, odometry_confidence=0.75, image_sharpness=2.5)
    read = monitor_streams._keys()(sample(key))
    assert list(read) == [KeySample(0.03125, RECEIPT_NS, 0.25, 0.75, 2.5)]
    key.odometry_confidence = math.nan
    (without,) = monitor_streams._keys()(sample(key))
    assert math.isnan(without.odometry_confidence)


def test_every_tenth_feedback_tells_of_the_loop() -> None:
    feedback = ExecutionFeedback(missed_ticks=7, lateness_p99_us=250.0)
    convert = monitor_streams._feedback()
    loops = [
        [item for item in convert(sample(feedback)) if isinstance(item, LoopSample)]
        for _ in range(21)
    ]
    told = LoopSample(7, pytest.approx(0.000250), RECEIPT_NS)
    assert [count for count, items in enumerate(loops) if items] == [0, 10, 20]
    assert loops[0] == [told]


def test_stamps_of_the_wrench_are_looked_at_in_pairs() -> None:
    convert = monitor_streams._wrenches()
    stamps = []
    for count in range(1, 31):
        message = WrenchStamped()
        message.header.stamp.sec, message.header.stamp.nanosec = 1_700_000_000, count
        message.wrench.force.z = 3.0
        for item in convert(sample(message)):
            if isinstance(item, StampSample):
                assert item.topic == "wrench"
                stamps.append(item.stamp_ns - 1_700_000_000_000_000_000)
            else:
                assert item == WrenchSample((0.0, 0.0, 3.0, 0.0, 0.0, 0.0), RECEIPT_NS)
    assert stamps == [1, 10, 11, 20, 21, 30]


def test_every_stamp_of_the_drives_is_looked_at() -> None:
    message = DriveState(name=["a"], temperature=[41.0])
    message.header.stamp.sec = -5  # a clock before 1970 is a clock
    drives, stamp = monitor_streams._drives()(sample(message))
    assert drives.temperature.tolist() == [41.0]
    assert stamp == StampSample("drive_state", -5_000_000_000, RECEIPT_NS)


def test_obstacles_are_spheres() -> None:
    message = ObstacleSpheres(center=[1.0, 2.0, 3.0], radius=[0.5])
    (read,) = monitor_streams._obstacles()(sample(message))
    assert isinstance(read, ObstacleSample)
    assert read.spheres.tolist() == [[1.0, 2.0, 3.0, 0.5]]
    assert read.receipt_ns == RECEIPT_NS


def test_rates_are_summed_over_domains_of_the_layers_that_decide() -> None:
    message = CacheStatistics(
        layers=[
            LayerStatistics(layer="task", domain="a", decisions=10, hits=9),
            LayerStatistics(layer="task", domain="b", decisions=5, hits=1),
            LayerStatistics(layer="execution", domain="a", decisions=9_000, hits=9_000),
        ]
    )
    (read,) = monitor_streams._rates(Sample(message, RECEIPT_NS, 0, 1))
    assert read == RatesSample({"task": (15, 10), "behavior": (0, 0)}, RECEIPT_NS)
