"""The report as a page: what it shows, that texts stay texts, and that it needs nothing else."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from shoal.insight.pages.charts import sparkline
from shoal.insight.pages.document import PageNotWritten, write
from shoal.insight.report.answers import Collected
from shoal.insight.report.page import page
from shoal.insight.report.words import figures, relative, times

EVIL = "<script>alert(1)</script> & \"quotes\" 'too'"
SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)
_DAYS = [f"2026-01-{day:02}" for day in range(4, 32)]


def totals(runs: int = 10, failed: int = 1, **more: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "runs": runs,
        "succeeded": runs - failed,
        "failed": failed,
        "stopped": 0,
        "failure_rate": failed / runs if runs else None,
        "late": 1,
        "late_rate": 1 / runs if runs else None,
        "attempts": runs * 3,
        "retries": 2,
        "retry_rate": 0.02,
        "wait_mean_s": 2.5,
        "busy_s": 7_200.0,
        "cpu_s": 3_600.0,
    }
    return values | more


def values(p50: float, **more: Any) -> dict[str, Any]:
    found = totals() | {"duration_p50_s": p50, "duration_p95_s": p50 * 2}
    return found | {"admission_mean_s": 4.0, "wait_p95_s": 9.0} | more


def workflow(name: str = EVIL, now: float = 300.0, before: float = 200.0) -> dict[str, Any]:
    return {
        "project": "p",
        "workflow": name,
        "now": values(now),
        "before": values(before),
        "duration_change_s": now - before,
        "duration_ratio": now / before,
        "daily": [
            {"day": day, "runs": 1, "failed": 0, "late": 0, "duration_p50_s": now}
            for day in _DAYS[:3]
        ],
    }


def collected(name: str = EVIL) -> Collected:
    some = [workflow(name), workflow("calm", 200.0, 200.0)]
    cost = {"attempts": 3, "cpu_s": 1800.0, "memory_gb_s": 3600.0, "slot_s": 7200.0}
    cells = [
        {
            "weekday": weekday,
            "hour": hour,
            "days": 4,
            "running_mean": float(hour),
            "running_max": hour,
            "waiting_mean": 0.0,
            "waiting_max": 1,
            "needed_max": hour,
        }
        for weekday in range(7)
        for hour in range(24)
    ]
    forecast = [
        {
            "forecast_day": f"2026-02-{day:02}",
            "hour": hour,
            "worker_group": name,
            "slots": hour + 2,
            "expected": float(hour),
            "tested_hours": 500,
            "error_p50": 2.0,
            "within_p95": 0.95,
        }
        for day in range(1, 8)
        for hour in range(24)
    ]
    worker = {"worker": name, "attempts": 1, "failed": 0, "lost": 0, "busy_s": 5.0, "slots": 4}
    minute = {
        "scope": "day",
        "minute": 135,
        "starts_mean": 40.0,
        "starts_max": 44,
        "skew_p50_s": 0.4,
        "skew_p95_s": 12.0,
        "is_hot": True,
    }
    move = {
        "schedule_id": 7,
        "project": "p",
        "workflow": name,
        "minute": 135,
        "move_min": -3,
        "highest_before": None,
        "highest_after": None,
    }
    place = {"project": "p", "workflow": name, "task": name, "count": 3}
    failure = {
        "fingerprint": "f",
        "sample": name,
        "count": 3,
        "first_seen": "2026-01-02T03:04:05Z",
        "last_seen": None,
        "workflows": 1,
        "by_day": [{"day": "2026-01-31", "count": 3}],
        "where": [place],
    }
    return Collected(
        at=datetime(2026, 2, 1, 7, tzinfo=UTC),
        source=f"https://shoal.example.org/{name}",
        project=None,
        summary={
            "first": "2026-01-04",
            "last": "2026-01-31",
            "days": 28,
            "before_first": "2025-12-07",
            "before_last": "2026-01-03",
            "before_days": 28,
            "until": "2026-01-31",
            "total": totals(),
            "before": totals(20),
            "daily": [{"day": day, **totals()} for day in _DAYS],
        },
        slower=some,
        waits=some,
        late=some,
        failing=some,
        failures={"total": 3, "items": [failure]},
        costs={
            "total": cost,
            "before": cost,
            "items": [{"project": "p", "workflow": name, "now": cost, "before": cost, "share": 1}],
        },
        load={
            "groups": [{"worker_group": name, "cells": cells}],
            "workers": [{**worker, "utilisation": None}],
            "forecast_of": "2026-01-31",
            "forecast": forecast,
        },
        minutes={"until": "2026-01-31", "minutes": [minute], "moves": [move]},
    )


class Page(HTMLParser):
    """What a browser would see: elements that are open, headings, texts, and what is wrong."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"{tag} has a handler: {name}"
            if name == "id":
                self.ids.append(value or "")
            if name in ("aria-labelledby", "aria-describedby"):
                self.targets += (value or "").split()
            if name in ("href", "src", "xlink:href"):
                assert (value or "").startswith("#"), f"{tag} points outside: {value}"
                self.targets.append((value or "")[1:])
        if tag not in ("meta", "br", "link", "img"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"closes {tag}, and nothing is open"
        assert self._open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_page_is_whole_and_needs_nothing_else() -> None:
    text = page(collected())
    seen = Page(text)
    assert "script" not in seen.elements
    assert {"link", "img", "iframe", "object"}.isdisjoint(seen.elements)
    assert "http-equiv" not in text
    assert "@import" not in text
    assert "url(" not in text
    assert len(seen.ids) == len(set(seen.ids))
    assert set(seen.targets) <= set(seen.ids)
    headings = ["Runs by day", "What got slower", "What fails", "What was late", "What waits"]
    headings += ["What was used", "When it is full", "What is to come", "Hot minutes"]
    shown = "".join(seen.texts)
    assert all(heading in shown for heading in headings)
    assert "4 – 31 January 2026" in shown
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_texts_of_workflows_and_errors_stay_texts() -> None:
    text = page(collected())
    assert "<script" not in text
    seen = Page(text)
    assert sum(EVIL in one for one in seen.texts) >= 8
    assert EVIL in "".join(seen.texts)


def test_every_drawing_is_well_formed_and_says_in_words_what_it_shows() -> None:
    drawings = SVG.findall(page(collected()))
    assert len(drawings) > 12
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        assert root.get("role") == "img"
        assert (root.findtext("title") or "").strip()
        numbers = re.findall(r'(?:x|y|width|height|points)="([^"]*)"', drawing)
        assert not any("nan" in one or "inf" in one for one in numbers)
        sizes = re.findall(r' (?:width|height)="([^"]*)"', drawing)
        assert not any(float(one) < 0 for one in sizes)


def test_tables_stand_beside_the_charts() -> None:
    seen = Page(page(collected()))
    assert seen.elements.count("details") >= 4
    assert seen.elements.count("caption") == seen.elements.count("table") >= 8


def test_without_results_the_page_says_what_to_do() -> None:
    none = dict.fromkeys(("first", "last", "before_first", "before_last", "until"))
    empty = collected()
    empty = replace(empty, summary={**empty.summary, **none})
    shown = "".join(Page(page(empty)).texts)
    assert "There are no results of run history yet" in shown
    assert "shoal insight status" in shown


def test_for_who_does_not_see_the_cluster_its_sections_are_missing() -> None:
    found = replace(collected(), load=None, minutes={"minutes": None, "moves": []})
    shown = "".join(Page(page(found)).texts)
    for heading in ("When it is full", "What is to come", "Hot minutes"):
        assert heading not in shown


def test_quiet_weeks_are_good_news() -> None:
    calm = [workflow("calm", 200.0, 200.0)]
    for one in calm:
        one["now"] |= {"admission_mean_s": 0.1, "wait_mean_s": 0.2, "late": 0}
    quiet = collected()
    cost = {"attempts": 0, "cpu_s": 0.0, "memory_gb_s": 0.0, "slot_s": 0.0}
    found = replace(
        quiet,
        slower=calm,
        waits=calm,
        late=calm,
        failures={"total": 0, "items": []},
        costs={"total": cost, "before": cost, "items": []},
    )
    shown = "".join(Page(page(found)).texts)
    assert "No attempt has failed." in shown
    assert "No run has missed its deadline." in shown
    assert "No workflow waits for more than a second" in shown


def test_figures_say_what_is_worse() -> None:
    summary = {"total": totals(10, 5), "before": totals(20, 1, wait_mean_s=2.49)}
    found = {one.name: one for one in figures(summary)}
    assert (found["Runs"].text, found["Runs"].change) == ("10", "50 % less than before")
    assert found["Runs"].is_worse is None
    assert (found["Failed"].text, found["Failed"].change) == ("50.0 %", "45.0 points up")
    assert found["Failed"].is_worse
    assert found["Wait for a worker"].is_worse is None, "half a per cent is nothing"
    nothing = {"total": totals(0, 0), "before": totals(0, 0)}
    assert {one.name: one.text for one in figures(nothing)}["Failed"] == "–"
    assert relative(1.0, 0.0) == "none before"
    assert [times(one) for one in (None, 1.25, 0.9, 3.14)] == ["", "+25 %", "-10 %", "3.1×"]


def test_line_with_gaps_has_a_piece_for_each_part() -> None:
    html = sparkline([1.0, 2.0, None, 4.0, 3.0], "told").html
    assert html.count("<polyline") == 2
    assert sparkline([1.0], "told").html == ""
    assert "nan" not in sparkline([5.0, 5.0], "told").html


def test_page_that_cannot_be_written_is_told_of(tmp_path: Any) -> None:
    with pytest.raises(PageNotWritten, match="missing"):
        write("text", tmp_path / "missing" / "report.html")
