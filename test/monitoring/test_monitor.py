"""The whole monitor: samples in, reports, responses and stage conditions out."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from monitoring_builders import MS, drives, feedback, task_state, wrench

from kv_action_router.contracts import InjectorEvent, InjectorState, StageCondition, TaskStatus
from kv_action_router.monitoring.config import MonitorConfig
from kv_action_router.monitoring.events import FailureReport
from kv_action_router.monitoring.lasting import Request
from kv_action_router.monitoring.monitor import FailureMonitor
from kv_action_router.monitoring.samples import (
    LIFECYCLE_ACTIVE,
    HeartbeatSample,
    KeySample,
    StopSample,
    TransportFault,
    TransportSample,
)
from kv_action_router.tasks.conditions import parse_conditions
from kv_action_router.tasks.rule_file import load_rules, parse_rules
from kv_action_router.tasks.rules import Response

RULES = load_rules(Path(__file__).parents[2] / "config" / "conditions.yaml")
NODES = ("task_key_encoder", "cache_manager", "behavior_synthesizer", "actuator_injector")
CONTACT = {"name": "contact", "signal": "wrench_force", "op": ">", "limit": 5.0, "held_ms": 20}
STAGE = SimpleNamespace(end=parse_conditions([CONTACT]), failure=())


class Bench:
    """A monitor that is polled every 4 ms; nodes that are not silenced beat every 20 ms."""

    def __init__(self, rules: object = RULES, **config: float) -> None:
        self.monitor = FailureMonitor(
            rules,  # type: ignore[arg-type]
            lambda task, stage: STAGE,
            nodes=NODES,
            config=MonitorConfig(**{"settle": 0.0, **config}),  # type: ignore[arg-type]
        )
        self.ms = 1_000.0
        self.silent: set[str] = set()
        self.force: float | None = 0.0
        self.feedback: dict[str, object] | None = {}
        self.reports: list[FailureReport] = []
        self.responses: list[FailureReport] = []
        self.conditions: list[StageCondition] = []
        self.requests: list[Request] = []

    def asked(self) -> list[tuple[str, str, bool, float]]:
        """Return the requests since the last call."""
        found, self.requests = self.requests, []
        return [(r.response.value, r.rule.name, r.begins, r.scale) for r in found]

    def run(self, milliseconds: float, *samples: object) -> None:
        """Poll until the time has passed; the samples arrive with the first poll."""
        end = self.ms + milliseconds
        queue = list(samples)
        while self.ms < end:
            self.ms += 4
            now_ns = int(self.ms * MS)
            if self.force is not None:
                queue.append(wrench(self.ms, self.force))
            if self.feedback is not None and self.ms % 12 == 0:
                queue.append(feedback(self.ms, **self.feedback))  # type: ignore[arg-type]
            if self.ms % 20 == 0:
                queue += [
                    HeartbeatSample(node, LIFECYCLE_ACTIVE, now_ns)
                    for node in NODES
                    if node not in self.silent
                ]
            verdict = self.monitor.update(now_ns, queue)
            queue = []
            self.reports += verdict.reports
            self.responses += verdict.responses
            self.conditions += verdict.conditions
            if self.ms > 1_004.0:  # at first what an earlier life may have left is lifted
                self.requests += verdict.requests

    def names(self) -> list[tuple[str, str]]:
        return [(report.detector, report.source) for report in self.reports]


def test_a_healthy_robot_gives_no_event() -> None:
    bench = Bench()
    bench.run(2_000, drives(1_000, [40.0, 45.0]))
    assert bench.reports == []
    assert bench.responses == []


@pytest.mark.parametrize("node", NODES)
def test_a_dead_node_is_named_within_100_ms_and_brakes(node: str) -> None:
    bench = Bench()
    bench.run(200)
    death = bench.ms
    bench.silent.add(node)
    bench.run(100)
    (report,) = bench.reports
    assert (report.detector, report.source, report.error_code) == ("node_lost", node, 510)
    assert 0.060 < report.value < 0.080
    assert report.limit == 0.060
    assert node in report.message
    assert report.monotonic_ns <= (death + 100) * MS
    assert [item.responses for item in bench.responses] == [(Response.BRAKE,)]
    bench.run(400)
    assert len(bench.responses) == 1


def test_a_node_never_seen_is_named_after_the_grace() -> None:
    bench = Bench()
    bench.silent.add("cache_manager")
    bench.run(9_980)
    assert bench.reports == []
    bench.run(60)
    assert bench.names() == [("node_absent", "cache_manager")]
    assert bench.responses == []  # it has never moved anything


def test_a_release_with_the_cause_still_there_stops_again() -> None:
    bench = Bench()
    bench.run(100)
    bench.silent.add("cache_manager")
    bench.run(100)
    assert len(bench.responses) == 1
    bench.run(40, StopSample(True, "failure_monitor", 0))
    assert len(bench.responses) == 1
    bench.run(40, StopSample(False, "", 0))
    assert len(bench.responses) == 2
    bench.silent.clear()
    bench.run(40)
    bench.run(100, StopSample(False, "", 0))
    assert len(bench.responses) == 2


def test_a_collision_brakes_within_a_few_milliseconds() -> None:
    bench = Bench()
    bench.force = -12.0  # bias
    bench.run(400)
    bench.force = -80.0
    begin = bench.ms
    bench.run(20)
    (report,) = bench.reports
    assert (report.detector, report.error_code) == ("unexpected_contact", 520)
    assert report.value == pytest.approx(68.0)
    assert report.monotonic_ns <= (begin + 12) * MS
    assert bench.responses[0].responses == (Response.BRAKE,)


def test_one_spike_of_force_does_not_brake() -> None:
    bench = Bench()
    bench.run(400)
    bench.force = 200.0
    bench.run(4)
    bench.force = 0.0
    bench.run(100)
    assert bench.reports == []


def test_nan_force_holds_nothing() -> None:
    bench = Bench()
    bench.run(400)
    bench.force = math.nan
    bench.run(400)
    assert bench.reports == []


def test_one_nan_among_the_samples_of_a_poll_is_not_overlooked() -> None:
    bench = Bench()
    bench.feedback = {"decision_id": 7}
    bench.run(400, task_state("touch", 7, allowed_contact="target"))
    bench.force = 6.0
    bench.run(16)
    bench.run(4, wrench(bench.ms + 2, math.nan))  # followed by a good one in the same poll
    bench.run(16)
    assert bench.conditions == []
    bench.run(8)
    assert [found.condition for found in bench.conditions] == ["contact"]


def test_a_press_that_lasts_interrupts() -> None:
    bench = Bench()
    bench.run(400, task_state())
    bench.force = 35.0
    bench.run(190)
    assert bench.reports == []
    bench.run(20)
    (report,) = bench.reports
    assert (report.detector, report.response) == ("sustained_press", "interrupt")
    assert report.held == pytest.approx(0.2)
    pressed = ("interrupt", "sustained_press", True, 1.0)
    assert bench.asked() == [pressed]
    bench.run(100, task_state(status=TaskStatus.INTERRUPTED))
    assert bench.asked() == []
    bench.run(100, task_state(decision_id=8))  # somebody resumes while it is still pressed
    assert bench.asked() == [pressed]
    bench.run(100, task_state(decision_id=8, status=TaskStatus.INTERRUPTED))
    bench.force = 0.0
    bench.run(100)
    assert bench.asked() == []  # a person resumes


def test_a_joint_that_does_not_follow_is_named() -> None:
    bench = Bench()
    bench.run(100)
    bench.feedback = {"decision_id": 3, "setpoint": (0.0, 0.3), "position": (0.0, 0.01)}
    bench.run(40)
    (report,) = bench.reports
    assert (report.detector, report.source, report.error_code) == ("tracking_lost", "wrist", 521)
    assert report.value == pytest.approx(0.29)
    assert report.decision.decision_id == 3
    assert bench.responses[0].responses == (Response.FAIL_SAFE, Response.INVALIDATE)


def test_heat_derates_by_drive_without_chatter() -> None:
    bench = Bench(repeat_period=0.0)
    bench.run(100)
    for value in (69.0, 71.0, 69.5, 71.0, 66.0, 70.5):
        bench.run(20, drives(bench.ms + 4, [40.0, value]))
    assert bench.names() == [("drive_hot", "wrist")]
    assert bench.responses[0].responses == (Response.DERATE,)
    bench.run(20, drives(bench.ms + 4, [40.0, 64.0]))
    bench.run(20, drives(bench.ms + 4, [40.0, 71.0]))
    assert [report.count for report in bench.reports] == [1, 2]


def test_repeats_are_counted_and_throttled() -> None:
    bench = Bench()
    bench.run(200)
    for _ in range(5):
        bench.run(20, drives(bench.ms + 4, [71.0, 40.0]))
        bench.run(20, drives(bench.ms + 4, [60.0, 40.0]))
    assert [report.count for report in bench.reports] == [1]
    assert len(bench.responses) == 5
    bench.run(1_000)
    assert [report.count for report in bench.reports] == [1, 5]


def test_transport_events_of_streams_at_work() -> None:
    bench = Bench()
    bench.run(400)

    def event(fault: TransportFault, topic: str, count: int) -> TransportSample:
        return TransportSample(fault, topic, count, "durability", int((bench.ms + 4) * MS))

    bench.run(40, event(TransportFault.DEADLINE, "trajectory_chunk", 50))  # no task: silent
    bench.run(40, event(TransportFault.DEADLINE, "task_key", 9))
    assert bench.reports == []
    bench.run(40, event(TransportFault.DEADLINE, "task_key", 5))
    bench.run(40, event(TransportFault.INCOMPATIBLE, "cache_match", 1))
    assert bench.names() == [("deadline_missed", "task_key"), ("incompatible_qos", "cache_match")]
    assert bench.reports[0].value == 14.0
    assert "durability" in bench.reports[1].message


def test_late_images_slow_down_and_stale_ones_interrupt_until_they_come_again() -> None:
    bench = Bench()
    bench.feedback = {"decision_id": 7}
    bench.run(60, task_state(), KeySample(0.03, int((bench.ms + 4) * MS)))
    assert bench.asked() == []
    bench.run(40)
    assert bench.names() == [("image_late", "")]
    assert bench.asked() == [("slow", "image_late", True, 0.3)]
    bench.run(200)
    assert bench.names()[1:] == [("stale_image", "")]
    assert bench.asked() == [("interrupt", "stale_image", True, 1.0)]
    bench.run(400, task_state(status=TaskStatus.INTERRUPTED))
    assert bench.asked() == []
    bench.run(40, KeySample(0.03, int((bench.ms + 4) * MS)))
    assert bench.asked() == [
        ("slow", "image_late", False, 1.0),
        ("interrupt", "stale_image", False, 1.0),
    ]


def test_the_stage_ends_on_its_own_contact() -> None:
    bench = Bench()
    bench.force = -12.0
    bench.feedback = {"decision_id": 6}
    bench.run(400, task_state("approach", 6, index=0))
    bench.run(40, task_state("touch", 7, allowed_contact="target"))
    assert bench.conditions == []
    bench.feedback = {"decision_id": 7}
    bench.run(100)
    assert bench.conditions == []
    bench.force = -6.5
    bench.run(100)
    (found,) = bench.conditions
    assert (found.condition, found.stage, found.decision_id) == ("contact", "touch", 7)
    assert found.value == pytest.approx(5.5)
    assert 0.020 <= found.held < 0.030


def test_a_condition_that_nobody_has_acted_on_is_told_again_while_it_holds() -> None:
    bench = Bench()
    bench.feedback = {"decision_id": 7}
    bench.run(400, task_state("touch", 7, allowed_contact="target"))
    bench.force = 6.0
    bench.run(100)
    assert [found.condition for found in bench.conditions] == ["contact"]
    bench.run(300)
    assert [found.decision_id for found in bench.conditions] == [7, 7]
    bench.run(10, task_state("retreat", 8, index=2))
    bench.run(500)
    assert len(bench.conditions) == 2


def test_no_tare_is_taken_on_what_the_stage_before_touches() -> None:
    bench = Bench()
    bench.feedback = {"decision_id": 7}
    bench.run(400, task_state("touch", 7, allowed_contact="target"))
    bench.force = 4.0  # touches, below the limit
    bench.run(200)
    bench.feedback = {"decision_id": 8}
    bench.run(200, task_state("retreat", 8, index=2))
    assert bench.monitor.table.value("wrench_force", int(bench.ms * MS)) == pytest.approx(4.0)
    bench.feedback = {"decision_id": 9}
    bench.run(200, task_state("approach", 9, index=0, goal="goal-2"))
    assert bench.monitor.table.value("wrench_force", int(bench.ms * MS)) == pytest.approx(0.0)


def test_no_tare_is_taken_on_what_the_task_before_still_presses() -> None:
    bench = Bench()
    bench.feedback = {"decision_id": 7}
    bench.run(400, task_state("touch", 7, allowed_contact="target"))
    bench.force = 9.0  # it fails there, and presses on
    bench.run(100)
    ended = replace(task_state("touch", 7), status=TaskStatus.FAILED)
    bench.run(100, ended)
    bench.feedback = {"decision_id": 8}
    bench.run(200, task_state("approach", 8, index=0, goal="goal-2"))
    assert bench.monitor.table.value("wrench_force", int(bench.ms * MS)) == pytest.approx(9.0)
    bench.force = 0.5  # it has withdrawn, and the sensor has drifted
    bench.run(100)
    bench.feedback = {"decision_id": 9}
    bench.run(200, task_state("touch", 9, allowed_contact="target", goal="goal-2"))
    assert bench.monitor.table.value("wrench_force", int(bench.ms * MS)) == pytest.approx(0.0)


def test_no_tare_is_taken_in_motion() -> None:
    bench = Bench()
    bench.feedback = {"decision_id": 6, "velocity": (0.5, 0.0)}
    bench.run(400, task_state("approach", 6, index=0))
    assert math.isnan(bench.monitor.table.value("wrench_force", int(bench.ms * MS)))
    bench.feedback = {"decision_id": 6}
    bench.run(40)
    assert bench.monitor.table.value("wrench_force", int(bench.ms * MS)) == pytest.approx(0.0)


def test_a_row_may_end_the_stage_but_not_by_what_held_before() -> None:
    row = {
        "name": "gripped", "signal": "wrench_force", "op": ">", "limit": 15.0, "held_ms": 200,
        "layer": "task", "response": "complete", "severity": "info", "error_code": 540,
        "message": "grip held",
    }  # fmt: skip
    bench = Bench(parse_rules({"conditions": [row]}))
    bench.monitor.stages._find_stage = lambda task, stage: SimpleNamespace(end=(), failure=())
    bench.feedback = {"decision_id": 5}
    bench.run(400, task_state("close", 6, index=0, allowed_contact="object"))
    bench.force = 16.0
    bench.run(300)
    assert bench.names() == [("gripped", "")]
    assert bench.conditions == []  # no motion of the stage was in force
    bench.feedback = {"decision_id": 7}
    bench.run(200, task_state("grip", 7, index=1, allowed_contact="object"))
    assert bench.conditions == []
    bench.run(40)
    (found,) = bench.conditions
    assert (found.condition, found.is_failure, found.decision_id) == ("gripped", False, 7)


def test_the_decision_of_a_refused_chunk_is_not_the_events() -> None:
    bench = Bench()
    bench.feedback = {"decision_id": 5}
    bench.run(100)
    bench.feedback = None
    late = feedback(bench.ms + 4, 9, event=InjectorEvent.CHUNK_LATE)
    bench.run(4, late, drives(bench.ms + 4, [90.0, 40.0]))
    assert bench.reports[0].decision.decision_id == 5


def test_status_shows_every_row() -> None:
    bench = Bench()
    bench.run(100)
    bench.silent.add("cache_manager")
    bench.run(100)
    status = {item.rule.name: item for item in bench.monitor.status()}
    assert set(status) == {rule.name for rule in RULES}
    assert status["node_lost"].count == 1
    assert [item.source for item in status["node_lost"].active] == ["cache_manager"]
    assert status["drive_hot"].active == ()


def test_reset_forgets_everything() -> None:
    bench = Bench()
    bench.run(100)
    bench.silent.add("cache_manager")
    bench.run(100)
    bench.monitor.reset()
    bench.reports.clear()
    bench.run(500)
    assert bench.reports == []  # not seen since activation, and not for long
    assert bench.monitor.status()[0].count == 0


def test_stopped_joints_have_no_tracking_error() -> None:
    bench = Bench()
    bench.feedback = {"setpoint": (0.0, 0.5), "state": InjectorState.STOPPED}
    bench.run(200)
    assert bench.reports == []


def test_a_sample_of_no_known_type_is_refused() -> None:
    with pytest.raises(TypeError, match="str"):
        Bench().monitor.update(0, ["sample"])
