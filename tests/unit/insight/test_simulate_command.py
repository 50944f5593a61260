"""``shoal simulate`` on a model in a file: what it prints, writes and refuses."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from shoal.client.cli import run
from shoal.client.cli.terminal import output
from shoal.insight.simulate.chart import page
from shoal.insight.simulate.model import InvalidModel, Model, read, write
from shoal.insight.simulate.result import simulate
from tests.unit.insight.models import model, question, workflow

SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)


@dataclass
class Ended:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Shoal = Callable[..., Ended]


@pytest.fixture
def shoal(capsys: pytest.CaptureFixture[str]) -> Shoal:
    """The command line, in this process."""

    def call(*arguments: object) -> Ended:
        output.out.cache_clear()
        output.err.cache_clear()
        capsys.readouterr()
        status = run(["simulate", *map(str, arguments)])
        seen = capsys.readouterr()
        return Ended(status, seen.out, seen.err)

    return call


def busy() -> Model:
    """Hourly runs that one slot cannot do in time, and one workflow with a calm life."""
    tasks = {"a": {}, "b": {"depends_on": ["a"]}, "c": {"depends_on": ["a"]}}
    seconds: dict[str, float | list[float]] = {"a": 600.0, "b": [900.0, 1_300.0], "c": 500.0}
    late = workflow("late", tasks, seconds, cron="0 0 * * * ?", deadline="35m")
    calm = workflow("calm", {"only": {}}, {"only": 1}, cron="0 30 0 * * ?", priority="HIGH")
    return model(late, calm, slots=1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write(busy(), tmp_path / "model.json")
    return tmp_path / "model.json"


def test_a_model_survives_its_file(file: Path) -> None:
    assert read(file) == busy()


def test_the_table_says_what_is_busy_late_and_narrow(shoal: Shoal, file: Path) -> None:
    ended = shoal("--model", file, "--days", 1)
    assert ended.status == 0, ended.err
    assert re.search(r"^default +1 +\d+% ", ended.out, re.MULTILINE)
    assert re.search(r"^default/late +24 ", ended.out, re.MULTILINE)
    assert re.search(r" [1-9]\d* of 24 ", ended.out)
    assert "first bottleneck: worker group default, from 2026-03-02 00:10 UTC" in ended.out
    assert "With 2 slots no task of it would wait at all." in ended.out
    assert "25 runs, " in ended.err


def test_the_same_seed_prints_the_same_and_another_does_not(shoal: Shoal, file: Path) -> None:
    first, again, other = (
        shoal("--model", file, "--days", 1, "--json", "--seed", seed).json for seed in (7, 7, 8)
    )
    assert first == again
    assert first["workflows"][0]["lasted"] != other["workflows"][0]["lasted"]


def test_more_slots_help(shoal: Shoal, file: Path) -> None:
    few = shoal("--model", file, "--days", 1, "--json").json
    many = shoal("--model", file, "--days", 1, "--json", "--slots", 9).json
    assert few["groups"][0]["waits"]["max_s"] > 0 == many["groups"][0]["waits"]["max_s"]
    assert many["groups"][0]["slots"] == 9
    assert many["bottleneck"] is None
    other = shoal("--model", file, "--days", 1, "--json", "--group", "default=9").json
    assert other == many


def test_a_workflow_is_added_with_durations_that_are_said(
    shoal: Shoal, file: Path, tmp_path: Path
) -> None:
    added = tmp_path / "new.yaml"
    added.write_text(
        "name: new\nschedules: [{cron: '0 0 3 * * ?'}]\n"
        "tasks: [{name: x, type: SHELL, params: {script: 'true'}}]\n"
    )
    arguments = ("--model", file, "--days", 1, "--json", "--add-workflow", added, "--slots", 9)
    found = shoal(*arguments).json
    (new,) = (one for one in found["workflows"] if one["name"] == "default/new")
    assert (new["runs"], new["succeeded"]) == (1, 1)
    assert new["lasted"]["max_s"] == 550.0  # the median of 1, 500, 600 and 1,100
    assert [text for text in found["left_out"] if "the median of their type" in text]
    found = shoal(*arguments, "--duration", "new:x=7m").json
    (new,) = (one for one in found["workflows"] if one["name"] == "default/new")
    assert new["lasted"]["max_s"] == 420.0
    assert found["left_out"] == []


def test_a_schedule_is_shifted(shoal: Shoal, file: Path) -> None:
    plain, later = (
        shoal("--model", file, "--days", 1, "--json", *more).json["workflows"][0]
        for more in ((), ("--shift", "late=+15m"))
    )
    assert plain["runs"] == later["runs"] == 24
    late_at = [datetime.fromisoformat(one["first_late_at"]) for one in (plain, later)]
    assert late_at[1] - late_at[0] == timedelta(minutes=15)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--shift", "late"], 2, "write NAME=VALUE"),
        (["--shift", "late=soon"], 2, "duration 'soon'"),
        (["--shift", "lade=5m"], 1, "did you mean late"),
        (["--duration", "late:z=5m"], 1, "has no task 'z'; it has a, b, c"),
        (["--group", "default=many"], 2, "is not a number of slots"),
        (["--days", "400"], 2, "less than or equal to 366"),
        (["--limit", "-3s"], 2, "duration"),
        (["--validate", "2026-03-02"], 2, "it is about a day that was"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    shoal: Shoal, file: Path, arguments: list[str], status: int, message: str
) -> None:
    ended = shoal("--model", file, *arguments)
    assert ended.status == status
    assert message in re.sub(r"[\s│]+", " ", ended.err)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the document: Invalid JSON"),
        ('{"at": "2026-03-02T00:00:00Z", "format": 9}', "format 9 is not known here"),
        ('{"at": "2026-03-02"}', "at: "),
        ('{"at": "2026-03-02T00:00:00Z", "groups": {"x": {"slots": -1}}}', "groups.x.slots: "),
        ('{"at": "2026-03-02T00:00:00Z", "workflows": [{"definition": {}}]}', "definition.name"),
    ],
)
def test_a_file_that_is_no_model_is_refused_by_where_it_is_wrong(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "m.json"
    file.write_text(text)
    with pytest.raises(InvalidModel, match=re.escape(str(file))) as refused:
        read(file)
    assert message in str(refused.value)


class _Parts(HTMLParser):
    """Counts elements, and notes what the page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]


def test_the_chart_is_one_page_that_says_in_words_what_it_shows(
    shoal: Shoal, file: Path, tmp_path: Path
) -> None:
    chart = tmp_path / "chart.html"
    assert shoal("--model", file, "--days", 2, "--chart", chart).status == 0
    text = chart.read_text()
    parts = _Parts()
    parts.feed(text)
    assert parts.fetched == []
    assert "script" not in parts.tags
    assert "http" not in text
    assert "prefers-color-scheme: dark" in text
    assert parts.tags.count("table") == 3  # of the groups, of the days of one, of workflows
    (svg,) = (ElementTree.fromstring(one) for one in SVG.findall(text))
    title, told = svg.find("title"), svg.find("desc")
    assert title is not None
    assert told is not None
    assert svg.get("role") == "img"
    assert svg.get("aria-labelledby") == f"{title.get('id')} {told.get('id')}"
    assert told.text is not None
    assert re.match(r"Of 1 slots \d+% are busy on the average", told.text)
    bars = svg.findall("rect")
    assert len(bars) == 48
    assert all(0 < float(bar.get("height") or 0) <= 150 for bar in bars)


def test_names_in_the_chart_are_text() -> None:
    one = workflow("w", {"a": {}}, {"a": 10}, cron="0 0 * * * ?")
    text = page(simulate(model(one, slots={"default": 1, "a<b>&c": 1}), question(2)))
    assert "a&lt;b&gt;&amp;c" in text
    assert "a<b>" not in text
