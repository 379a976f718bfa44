"""Records that were written come back, so that a report can be made anew."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from run_records import a_whole_run, runs, setting_of

from kv_action_router.errors import InputError
from kv_action_router.reporting import archive, report
from kv_action_router.reporting.records import RunRecord


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(runs())
def test_any_run_comes_back(tmp_path, run: RunRecord) -> None:
    setting = setting_of(run)
    archive.save(run, setting, tmp_path / "records.json")
    loaded, again = archive.load(tmp_path / "records.json")
    assert again == setting
    assert repr(loaded.cycles) == repr(run.cycles)  # nan is not nan
    built, rebuilt = (report.measured(report.build(r, setting)) for r in (run, loaded))
    assert json.dumps(built) == json.dumps(rebuilt)


def test_a_trace_and_a_picture_come_back(tmp_path) -> None:
    run = a_whole_run()
    archive.save(run, setting_of(run), tmp_path / "new" / "records.json")
    loaded, _ = archive.load(tmp_path / "new" / "records.json")
    assert loaded.trace.joints == run.trace.joints
    np.testing.assert_allclose(loaded.trace.forces, run.trace.forces, atol=1e-6)
    assert loaded.trace.placements == run.trace.placements
    for a, b in zip(loaded.trace.motion, run.trace.motion, strict=True):
        np.testing.assert_allclose(a.command, b.command, atol=1e-6)
    assert loaded.frame is not None and run.frame is not None
    np.testing.assert_array_equal(loaded.frame.image, run.frame.image)


@pytest.mark.parametrize("text", ["", "{}", '{"version": 0}', "[1]", '{"version": 1}'])
def test_a_damaged_file_is_named(tmp_path, text: str) -> None:
    path = tmp_path / "records.json"
    with pytest.raises(InputError, match="records"):
        archive.load(path)
    path.write_text(text)
    with pytest.raises(InputError):
        archive.load(path)
