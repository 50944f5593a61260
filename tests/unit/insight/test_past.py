"""Pages of past runs and single ones, out of files as exporters leave them: nothing is missed."""

import io
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from shoal.insight.export.columns import arrow_of
from shoal.insight.history.manifest import HistoryFile, Manifest
from shoal.insight.history.store import HistoryStore
from shoal.insight.history.tables import ATTEMPTS, INSTANCES, PLANS, HistoryTable
from shoal.insight.past.questions import PageWanted
from shoal.insight.past.reader import PastReader

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 8
STATES = ("SUCCEEDED", "FAILED")


class Made:
    """A history of runs, some of which ended more than once, and what is true of it."""

    def __init__(self, root: Path, seed: int, with_ids: bool) -> None:
        self.chance = random.Random(seed)
        self.store, self._with_ids = HistoryStore(str(root), "uid"), with_ids
        self.truth: dict[int, dict[str, Any]] = {}
        self.attempts: dict[int, list[int]] = {}
        self._sequence = self._event = 0

    def export(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write one export: rows of instances by day, with two attempts each, and a plan."""
        self._sequence += 1
        files: list[HistoryFile] = []
        for day in sorted({_day(row["finished_at"]) for row in rows}):
            some = [row for row in rows if _day(row["finished_at"]) == day]
            files.append(self._put(INSTANCES, day, some))
            files.append(self._put(ATTEMPTS, day, [one for row in some for one in _attempts(row)]))
        if self._sequence == 1:
            at = FIRST - timedelta(days=1)
            plans = [
                _plan(project, workflow, at, "a")
                for project in ("p", "q")
                for workflow in ("daily", "rare")
            ]
            files.append(self._put(PLANS, at.date(), plans))
        self.store.put_manifest(Manifest(self._sequence, files, None))

    def add(self, table: HistoryTable, rows: Sequence[dict[str, Any]]) -> None:
        """Write one export with rows of one day of a table."""
        self._sequence += 1
        file = self._put(table, _day(rows[0][table.at]), rows)
        self.store.put_manifest(Manifest(self._sequence, [file], None))

    def plan(self, project: str, workflow: str, at: datetime, task: str) -> None:
        """Write one export with a version 1 of a workflow, of one task."""
        self.add(PLANS, [_plan(project, workflow, at, task)])

    def run(self, instance_id: int, at: datetime) -> dict[str, Any]:
        """Return a row of an instance that ends at a time; it counts from now on."""
        self._event += 1
        known = self.truth.get(instance_id, {})
        row = {
            "instance_id": instance_id,
            "project": known.get("project", self.chance.choice(["p", "p", "q"])),
            "workflow": known.get("workflow", self.chance.choice(["daily"] * 9 + ["rare"])),
            "version": 1,
            "state": self.chance.choice(STATES),
            "trigger": "request",
            "priority": 2,
            "logical_time": _us(at),
            "created_at": known.get("created_at", _us(at - timedelta(hours=1))),
            "finished_at": _us(at),
            "labels": [("team", "x")],
            "event_id": self._event,
        }
        self.truth[instance_id] = row
        return row

    def _put(self, table: HistoryTable, day: date, rows: Sequence[dict[str, Any]]) -> HistoryFile:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        made, left_out = arrow_of(table, columns)
        assert not left_out
        content = io.BytesIO()
        pq.write_table(made, content, coerce_timestamps="us", row_group_size=7)
        ids = None
        if self._with_ids and table is not PLANS:
            found = [row["instance_id"] for row in rows]
            ids = (min(found), max(found))
        written = content.getvalue()
        return self.store.put(self._sequence, table.name, day, written, len(rows), ids=ids)


def _plan(project: str, workflow: str, at: datetime, task: str) -> dict[str, Any]:
    return {
        "project": project,
        "workflow": workflow,
        "version": 1,
        "tasks": [{"name": task, "type": "SHELL", "worker_group": "g", "upstream": []}],
        "published_at": _us(at),
        "event_id": _us(at),
    }


def _attempts(row: dict[str, Any]) -> list[dict[str, Any]]:
    both = ("instance_id", "project", "workflow", "version", "state", "finished_at", "event_id")
    return [
        {
            **{name: row[name] for name in both},
            "attempt_id": row["instance_id"] * 10 + number,
            "task": "a",
            "type": "SHELL",
            "worker_group": "g",
            "attempt": number,
            "forced": False,
        }
        for number in (1, 2)
    ]


def _us(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000)


def _day(at_us: int) -> date:
    return datetime.fromtimestamp(at_us / 1_000_000, UTC).date()


@pytest.fixture(params=[(1, True), (2, False), (3, True)])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Made, PastReader]]:
    """A history in many small files, and its reader."""
    seed, with_ids = request.param
    history = Made(tmp_path, seed, with_ids)
    number = 0
    for step in range(DAYS * 2):
        rows = []
        for _ in range(history.chance.randint(1, 25)):
            number += 1
            # Ends come in no order, and some at the same microsecond.
            at = FIRST + timedelta(days=step / 2, seconds=history.chance.randint(-9_000, 90_000))
            rows.append(history.run(number, at))
            if history.chance.random() < 0.1:
                again = history.chance.randint(1, number)
                last = history.truth[again]["finished_at"] / 1_000_000
                later = max(at, datetime.fromtimestamp(last, UTC))
                rows.append(history.run(again, later + timedelta(seconds=7)))
        history.export(rows)
    # After the first seed all files are read in parts.
    reader = PastReader(history.store, small=1 << 20 if seed == 1 else 0)
    yield history, reader
    reader.close()


def all_pages(reader: PastReader, wanted: PageWanted) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for _ in range(10_000):
        page = reader.page(wanted)
        assert len(page.rows) <= wanted.limit
        found += [dict(row) for row in page.rows]
        if page.before is None:
            return found
        wanted = replace(wanted, before=page.before)
    raise AssertionError("no end")


def expected(history: Made, wanted: PageWanted) -> list[int]:
    def fits(row: dict[str, Any]) -> bool:
        day = _day(row["finished_at"])
        return (
            (wanted.projects is None or row["project"] in wanted.projects)
            and (wanted.workflow is None or row["workflow"] == wanted.workflow)
            and (not wanted.states or row["state"] in wanted.states)
            and (wanted.first is None or day >= wanted.first)
            and (wanted.last is None or day <= wanted.last)
        )

    rows = [row for row in history.truth.values() if fits(row)]
    order = sorted(rows, key=lambda row: (row["finished_at"], row["instance_id"]), reverse=True)
    return [row["instance_id"] for row in order]


@pytest.mark.parametrize("limit", [3, 500])
def test_pages_have_each_run_once_as_it_ended_last(
    made: tuple[Made, PastReader], limit: int
) -> None:
    history, reader = made
    some = FIRST.date() + timedelta(days=2)
    for wanted in (
        PageWanted(limit),
        PageWanted(limit, projects=["q"]),
        PageWanted(limit, projects=[]),
        PageWanted(limit, workflow="rare", states=["FAILED"]),
        PageWanted(limit, projects=["p", "q"], first=some, last=some + timedelta(days=3)),
        PageWanted(limit, states=["KILLED"]),
    ):
        found = all_pages(reader, wanted)
        assert [row["instance_id"] for row in found] == expected(history, wanted), wanted
        for row in found:
            truth = history.truth[row["instance_id"]]
            assert (row["state"], row["event_id"]) == (truth["state"], truth["event_id"])
            assert row["labels"] == {"team": "x"}


def test_pages_that_take_too_long_end_where_they_are_and_miss_nothing(
    made: tuple[Made, PastReader],
) -> None:
    history, _ = made
    reader = PastReader(history.store, page_s=-1.0)
    wanted = PageWanted(500, workflow="rare")
    page = reader.page(wanted)
    assert page.before is not None
    assert len(page.rows) < len(expected(history, wanted))
    found = all_pages(reader, wanted)
    assert [row["instance_id"] for row in found] == expected(history, wanted)


def test_each_run_is_found_by_its_id(made: tuple[Made, PastReader]) -> None:
    history, reader = made
    for number, truth in history.truth.items():
        run = reader.run(number)
        assert run is not None
        assert (run.row["finished_at"], run.row["state"]) == (truth["finished_at"], truth["state"])
        assert [one["attempt_id"] for one in run.attempts] == [number * 10 + 1, number * 10 + 2]
        assert run.attempts[0]["event_id"] == truth["event_id"]
        assert run.tasks == [{"name": "a", "type": "SHELL", "worker_group": "g", "upstream": []}]
    assert reader.run(10_000) is None


def test_of_two_workflows_that_had_one_name_each_run_has_its_own_plan(tmp_path: Path) -> None:
    history = Made(tmp_path, 1, True)
    renamed, later = FIRST + timedelta(days=1), FIRST + timedelta(days=3)
    history.export([history.run(1, renamed), history.run(2, later)])
    for run in (1, 2):
        row = history.truth[run]
        history.plan(row["project"], row["workflow"], renamed + timedelta(hours=1), "other")
    reader = PastReader(history.store)
    runs = [reader.run(number) for number in (1, 2)]
    names = [[task["name"] for task in run.tasks or ()] for run in runs if run is not None]
    assert names == [["a"], ["other"]]
    reader.close()


def test_attempts_that_ended_behind_midnight_by_another_clock_are_there(tmp_path: Path) -> None:
    history = Made(tmp_path, 1, True)
    row = history.run(1, FIRST + timedelta(days=1, microseconds=-1))
    history.export([row])
    late = {**_attempts(row)[0], "attempt_id": 99, "finished_at": row["finished_at"] + 1}
    history.add(ATTEMPTS, [late])
    run = PastReader(history.store).run(1)
    assert run is not None
    assert [one["attempt_id"] for one in run.attempts] == [11, 12, 99]


def test_new_exports_are_seen(made: tuple[Made, PastReader]) -> None:
    history, reader = made
    before = len(all_pages(reader, PageWanted(500)))
    history.export([history.run(5_000, FIRST + timedelta(days=DAYS + 3))])
    assert reader.page(PageWanted(1)).rows[0]["instance_id"] == 5_000
    assert len(all_pages(reader, PageWanted(500))) == before + 1


def test_a_run_of_very_many_attempts_is_cut(tmp_path: Path) -> None:
    history = Made(tmp_path, 1, True)
    history.export([history.run(1, FIRST)])
    run = PastReader(history.store, most_attempts=1).run(1)
    assert run is not None
    assert (len(run.attempts), run.left_out, run.attempts[0]["attempt"]) == (1, 1, 2)


def test_questions_go_through_json() -> None:
    wanted = PageWanted(5, ["p"], "w", ["FAILED"], date(2026, 1, 1), None, (7, 8))
    assert PageWanted.from_json(wanted.to_json()) == wanted
