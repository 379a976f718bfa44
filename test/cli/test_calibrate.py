"""``kv_router calibrate`` on a log that a decision log has written."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from rich.console import Console

from kv_action_router.cli import main as cli
from kv_action_router.cli.calibrate import run


@pytest.fixture
def log(tmp_path: Path) -> Path:
    generator = np.random.default_rng(5)
    lines = []
    for trace_id, similarity in enumerate(generator.uniform(0.6, 1.0, 900)):
        good = similarity > 0.75 or generator.random() > 0.4
        lines.append(
            {
                "decision": 1, "trace_id": str(trace_id), "stamp_ns": 0, "domain": "a",
                "source_domain": "a", "scene": "table", "intent_id": "i", "subtask": "s",
                "hit": True, "reason": "", "similarity": float(similarity), "threshold": 0.6,
                "margin": None, "target_similarity": 0.9, "worst_slice": "body", "guard": "",
                "entry_id": 1,
            }
        )  # fmt: skip
        lines.append(
            {
                "outcome": "success" if good else "failure",
                "trace_id": str(trace_id),
                "false_hit": not good,
                "error": 0.001,
            }
        )
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "broken\n")
    return path


def call(*arguments: str) -> tuple[int, str]:
    out = Console(file=io.StringIO(), width=200)
    code = run(cli.make_parser().parse_args(["calibrate", *arguments]), out)
    return code, out.file.getvalue()  # type: ignore[attr-defined]


def test_a_log_becomes_thresholds_a_plot_and_a_parameter_file(log: Path, tmp_path: Path) -> None:
    plot, parameters = tmp_path / "curves.png", tmp_path / "thresholds.yaml"
    code, text = call(str(log), "--plot", str(plot), "--write", str(parameters))
    assert code == 0
    assert "recommended" in text and "literature 0.85" in text and "literature 0.72" in text
    assert "1 lines of the log are no decisions" in text
    assert plot.read_bytes().startswith(b"\x89PNG")
    values = yaml.safe_load(parameters.read_text())["/**"]["cache_manager"]["ros__parameters"]
    assert values["scene_names"] == ["table"]
    assert 0.72 < values["scene_thresholds"][0] < 0.80


def test_a_scene_that_nothing_is_recommended_for_keeps_its_threshold(
    log: Path, tmp_path: Path
) -> None:
    """The parameter file replaces all thresholds, and ROS takes no empty list."""
    strict = (
        log.read_text()
        .replace('"table"', '"shelf"')
        .replace('"threshold": 0.6', '"threshold": 0.95')
    )
    lines = [line for line in strict.splitlines() if '"decision"' in line][:20]
    parameters = tmp_path / "thresholds.yaml"

    def written() -> dict[str, float]:
        values = yaml.safe_load(parameters.read_text())["/**"]["cache_manager"]["ros__parameters"]
        return dict(zip(values["scene_names"], values["scene_thresholds"], strict=True))

    log.write_text(log.read_text() + "\n".join(lines))
    assert call(str(log), "--write", str(parameters))[0] == 1
    assert written()["shelf"] == 0.95
    assert 0.72 < written()["table"] < 0.80
    log.write_text("\n".join(lines))
    assert call(str(log), "--write", str(parameters))[0] == 1
    assert written() == {"shelf": 0.95}


def test_json_is_json(log: Path) -> None:
    code, text = call(str(log), "--json")
    answer = json.loads(text)
    assert code == 0
    assert answer["scenes"]["table"]["in_force"] == 0.6
    assert answer["scenes"]["table"]["recommended"]["false_rate_bound"] <= 0.01
    assert answer["unreadable_lines"] == 1


def test_a_log_that_vouches_for_nothing_is_no_success(log: Path) -> None:
    code, text = call(str(log), "--risk", "0.0001")
    assert code == 1
    assert "are needed to vouch for" in text


def test_the_command_line_names_what_is_wrong(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["calibrate", str(tmp_path / "none.jsonl")]) == 1
    assert "kv_router: log must be a file that can be read" in capsys.readouterr().err
    for option in ("--plot", "--write"):
        assert cli.main(["calibrate", str(log), option, str(log / "file.png")]) == 1
        error = capsys.readouterr().err
        assert "plot, write must be files that can be written, got" in error
        assert str(log) in error
