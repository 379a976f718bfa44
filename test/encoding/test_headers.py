"""Headers carry everything that is known of the task, each with its own sequence and trace id."""

from dataclasses import fields

from kv_action_router.contracts import Decision
from kv_action_router.encoding.config import EncoderConfig
from kv_action_router.encoding.headers import Headers


def test_every_field_of_the_known_decision_is_carried():
    headers = Headers(EncoderConfig(), "encoder-1", 100)
    known = Decision(
        epoch=3,
        decision_id=7,
        domain="line",
        source_domain="origin",
        robot_id="robot",
        encoder_id="encoder-1",
        scene="table",
        intent_id="touch",
        frame_id="base",
    )
    headers._known = known
    made = headers.next(5, 4, 6)
    own = {"trace_id": 101, "trigger_monotonic_ns": 5, "stage_ns": (4, 0, 0, 0, 0), "sequence": 1}
    own["stamp_ns"] = 6
    for field in fields(Decision):  # a field that is added later must be carried too
        assert getattr(made, field.name) == own.get(field.name, getattr(known, field.name))
        assert field.name in own or getattr(known, field.name) != field.default
    second = headers.next(5, 4, 6)
    assert (second.sequence, second.trace_id) == (2, 102)
