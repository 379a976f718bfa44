"""Body inputs are masked when they are old; duty is the mean since the last key."""

import numpy as np
from encoding_builders import JOINTS, MS, SECOND, drives, imu

from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.inputs import BodyInputs
from kv_action_router.encoding.odometry import OdometrySample


def inputs():
    return BodyInputs(EncoderConfig(), JOINTS)


def test_nothing_measured_is_none():
    made = inputs()
    assert made.imu(SECOND) is None
    assert made.duty(SECOND) is None
    assert made.displacement(SECOND) is None
    assert made.odometry_confidence == 1.0


def test_old_imu_is_masked():
    made = inputs()
    made.on_imu(imu(SECOND))
    assert made.imu(SECOND + 200 * MS) is not None
    assert made.imu(SECOND + 201 * MS) is None


def test_duty_is_averaged_by_name_and_kept_until_new_feedback():
    made = inputs()
    made.on_drives(drives(SECOND, np.full(6, 0.2)))
    made.on_drives(drives(SECOND + MS, np.array([0.4, np.nan]), ("pan", "lift")))
    duty = made.duty(SECOND + MS)
    assert np.allclose(duty, [0.3, 0.2, 0.2, 0.2, 0.2, 0.2])
    assert np.allclose(made.duty(SECOND + 2 * MS), duty)
    made.on_drives(drives(SECOND + 3 * MS, np.full(6, -0.5)))
    assert np.allclose(made.duty(SECOND + 3 * MS), -0.5)
    assert made.duty(SECOND + SECOND) is None


def test_drives_without_duty_are_no_feedback():
    made = inputs()
    made.on_drives(drives(SECOND, np.zeros(0)))
    assert made.duty(SECOND) is None
    made.on_drives(drives(SECOND, np.ones(1), ("wheel",)))
    assert np.isnan(made.duty(SECOND)).all()


def test_slip_is_judged_only_with_fresh_odometry():
    made = inputs()
    for step in range(100):
        now = SECOND + 10 * step * MS
        made.on_imu(imu(now, linear_acceleration=np.array([5.0, 0.0, 9.81])))
    assert made.odometry_confidence == 1.0
    for step in range(100, 200):
        now = SECOND + 10 * step * MS
        made.on_odometry(OdometrySample(0.0, 0.0, 0.0, 0.0, 0.0, now))
        made.on_imu(imu(now, linear_acceleration=np.array([5.0, 0.0, 9.81])))
    assert made.odometry_confidence < 0.05
