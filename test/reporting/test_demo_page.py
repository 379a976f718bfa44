"""The page of a run: it stands alone, can be read by everybody, and holds every figure."""

from __future__ import annotations

import json
import math
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from run_records import a_whole_run, runs, setting_of

from kv_action_router.reporting import bounds, demo_page, plots, report, sentences
from kv_action_router.reporting.benchmark import judged
from kv_action_router.reporting.film import Frame, Shot
from kv_action_router.reporting.page import number
from kv_action_router.reporting.records import CycleRecord, RunRecord

VOID = {"meta", "img", "br", "hr", "link", "input"}


class Reader(HTMLParser):
    """Checks the nesting of a page and gathers what stands in it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if not {"style"} & set(self.open) else ""

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def content_of(run: RunRecord, **changes: Any) -> dict[str, Any]:
    setting = setting_of(run, **changes)
    built = report.build(run, setting)
    built["judged"] = [
        {**judged(bound, built), "judged": bound.is_essential}
        for bound in bounds.BOUNDS[setting.work]
    ]
    content = report.measured(built)
    json.dumps(content, allow_nan=False)
    return content


def numbers_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*map(numbers_of, value.values())) if value else set()
    if isinstance(value, (list, tuple)):
        return set().union(*map(numbers_of, value)) if value else set()
    return set() if isinstance(value, (str, bool)) or value is None else {number(value)}


@pytest.fixture(scope="module")
def whole() -> tuple[dict[str, Any], str]:
    run = a_whole_run()
    content = content_of(run)
    drawn = plots.draw(run, content)
    frames = [Frame(Shot(0, 0.5, 'approach: "ends"'), b"\xff\xd8 no real picture")]
    text = demo_page.render(content, drawn, frames)
    plots.close(drawn)
    return content, text


def test_the_page_is_well_formed_and_refers_to_nothing_outside_of_itself(whole) -> None:
    _, text = whole
    reader = Reader(text)
    ids = [attributes["id"] for _, attributes in reader.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert not reader.all("script") + reader.all("link") + reader.all("iframe")
    assert "http" not in text
    assert "@import" not in text
    for _, attributes in reader.found:
        for name in ("src", "href"):
            target = attributes.get(name)
            if target is None:
                continue
            assert target.startswith(("data:image/", "#"))
            if target.startswith("#"):
                assert target[1:] in ids


def test_pictures_have_words_and_tables_captions_and_heads(whole) -> None:
    content, text = whole
    reader = Reader(text)
    assert all(len(attributes.get("alt") or "") > 10 for attributes in reader.all("img"))
    labels = [attributes.get("aria-label") or "" for attributes in reader.all("svg")]
    assert len(labels) >= 8 and all(len(label) > 20 for label in labels)
    assert len(reader.all("caption")) == len(reader.all("table")) >= 8
    assert all("scope" in attributes for attributes in reader.all("th"))
    assert len(reader.all("h1")) == 1
    assert (reader.found[0], reader.all("html")[0]["lang"]) == (("html", {"lang": "en"}), "en")
    assert sentences.title(content) in reader.text


def test_every_figure_of_the_report_is_in_the_page(whole) -> None:
    content, text = whole
    words = Reader(text).text
    assert {shown for shown in numbers_of(content) if shown not in words} == set()
    assert "a <node>: 12 ms" in words


def test_colors_follow_the_page_in_light_and_dark(whole) -> None:
    _, text = whole
    assert "prefers-color-scheme: dark" in text
    drawn = text[text.index("<body>") :]
    assert "var(--blue)" in drawn
    assert not any(color in drawn for color in ("#2a7f9e", "#1f2a37"))


def test_an_incomplete_run_says_so_on_top() -> None:
    run = a_whole_run(2)
    run.ended_by = "cache_manager <died> with -9"
    content = content_of(run, cycles=5)
    text = demo_page.render(content, [], [])
    reader = Reader(text)
    assert "It ended after 2 of 5 cycles: cache_manager <died> with -9" in reader.text
    assert text.index('class="alarm"') < text.index("<h2>")
    assert any(
        "failed screws: 3" in line for line in bounds.broken(content, bounds.SCREW_BOUNDS, True)
    )


def test_the_sentences_are_made_of_the_measured_numbers() -> None:
    text = " ".join(sentences.summary(content_of(a_whole_run())))
    assert "3 of 3 cycles succeeded; at 95 % confidence, at least 36.8 % of all would." in text
    assert "tightened with 3.49 to 3.49 N m, 3.5 were commanded: off by at most 0.286 %." in text
    assert "Of 9 decisions 6 came from the cache" in text
    assert "a hit took 4.9 ms on average and 4.9 ms at most" in text
    assert "within 1.10 mm of its true place in 95 % of 6 looks" in text


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(runs(), st.sampled_from((None, 3.5)), st.integers(0, 4))
def test_any_run_has_a_page(run: RunRecord, torque: float | None, asked: int) -> None:
    content = content_of(run, commanded_torque=torque, cycles=asked)
    Reader(demo_page.render(content, [], []))
    assert content["cycles_asked"] >= len(run.cycles)
    for rate in (*content["rates"].values(), *content["stage_rate"].values()):
        if rate["trials"]:
            assert rate["lower_bound_95"] <= rate["share"] <= rate["upper_bound_95"]


@settings(max_examples=2, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(runs())
def test_any_run_can_be_drawn(run: RunRecord) -> None:
    drawn = plots.draw(run, content_of(run))
    Reader(demo_page.render(content_of(run), drawn, []))
    plots.close(drawn)


def test_one_cycle_without_a_single_figure_can_be_drawn() -> None:
    run = RunRecord(cycles=[CycleRecord(1)])
    run.cycles[0].target_errors = [math.nan]
    run.image_ages_ms = [math.nan]
    content = content_of(run, cycles=1)
    drawn = plots.draw(run, content)
    assert [plot.name for plot in drawn] == ["hit_rate"]
    Reader(demo_page.render(content, drawn, []))
    plots.close(drawn)
