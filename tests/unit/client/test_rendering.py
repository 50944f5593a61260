"""What people see: states, times, tables, runs as trees; and the text of tasks on terminals."""

import io
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from shoal.client.cli.exits import EPILOG, ExitStatus, exit_status
from shoal.client.cli.runs.view import (
    bar_text,
    children_text,
    head_text,
    progress_text,
    tasks_table,
)
from shoal.client.cli.terminal import appearance, output
from shoal.client.cli.terminal.appearance import LOOKS, clock, counts_text, harmless, lasted, plural
from shoal.client.cli.terminal.tables import TextTable
from shoal.client.cli.views.attempts import attempts_table
from shoal.client.errors import (
    ApiProblem,
    ApiUnreachable,
    CommandRefused,
    FieldProblem,
    NoCluster,
    NotFound,
)
from shoal.client.rest.operations.generated.types import InstanceDetail, InstanceTask, ProgressOut
from shoal.core.checks.workflow import InvalidDefinition
from shoal.core.errors import ShoalError
from shoal.core.runs.states import TaskState, WorkflowState
from tests.unit.client.terminal import shown

NOW = datetime(2026, 11, 21, 6, 0, 10, tzinfo=UTC)


def attempt(task: str, state: str, *depends_on: str, **fields: Any) -> InstanceTask:
    found: dict[str, Any] = {
        "id": 1,
        "workflow_instance_id": 7,
        "task": task,
        "type": "SHELL",
        "attempt": 1,
        "state": state,
        "worker_group": "default",
        "worker": None,
        "reason": None,
        "environment": None,
        "exit_code": None,
        "queued_at": None,
        "started_at": None,
        "finished_at": None,
        "depends_on": list(depends_on),
        **fields,
    }
    return found  # type: ignore[return-value]  # put together from parts


def instance(*tasks: InstanceTask, state: str = "RUNNING") -> InstanceDetail:
    counts: dict[str, int] = {}
    for task in tasks:
        counts[task["state"]] = counts.get(task["state"], 0) + 1
    found: dict[str, Any] = {
        "id": 7,
        "project": "p",
        "workflow": "w",
        "version": 3,
        "state": state,
        "reason": None,
        "priority": "MEDIUM",
        "parameters": {},
        "logical_time": "2026-11-21T06:00:00Z",
        "created_at": "2026-11-21T06:00:00Z",
        "started_at": "2026-11-21T06:00:00Z",
        "finished_at": None,
        "rerun_of": None,
        "run_number": 1,
        "command_id": 1,
        "timezone": "UTC",
        "parent": None,
        "task_counts": counts,
        "tasks": list(tasks),
        "labels": {},
        "schedule_id": None,
        "backfill_id": None,
    }
    return found  # type: ignore[return-value]  # put together from parts


def test_every_state_has_a_look() -> None:
    assert {*TaskState.__members__, *WorkflowState.__members__} <= set(LOOKS)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("Europe/Berlin", "2026-05-02 02:30 Europe/Berlin"),
        ("America/New_York", "2026-05-01 20:30 America/New_York"),
        ("Asia/Tokyo", "2026-05-02 09:30 Asia/Tokyo"),
        ("UTC", "2026-05-02 00:30 UTC"),
    ],
)
def test_times_of_another_zone_are_told_by_its_clock_and_name(zone: str, shown: str) -> None:
    assert clock("2026-05-02T00:30:00Z", NOW, zone) == shown


def test_whether_a_time_is_today_is_told_by_the_clock_that_is_shown() -> None:
    late = datetime(2026, 11, 21, 14, 0, 0, tzinfo=UTC)
    assert clock("2026-11-21T15:30:00Z", late, "UTC") == "15:30:00 UTC"
    assert clock("2026-11-21T15:30:00Z", late, "Asia/Tokyo") == "2026-11-22 00:30 Asia/Tokyo"


def test_zone_that_this_machine_does_not_know_leaves_its_own_clock() -> None:
    assert clock("2026-05-02T00:30:00Z", NOW, "Mars/Olympus") == clock("2026-05-02T00:30:00Z", NOW)


def test_no_command_writes_times_but_by_the_functions_that_name_the_zone() -> None:
    folder = Path(appearance.__file__).parents[1]
    own = {
        file.name
        for file in folder.rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.search(r"strftime|:%[HYa]", line) and "%z" not in line
    }
    # A preview has a column of its own that is called UTC.
    assert own == {"appearance.py", "schedules.py"}


def test_times_are_local_and_short() -> None:
    today = datetime(2026, 11, 21, 5, 0, 3, tzinfo=UTC)
    local = today.astimezone()
    assert clock(today.isoformat(), NOW) == local.strftime("%H:%M:%S %Z")
    assert clock("2025-01-02T12:00:00Z", NOW).startswith("2025-01-02 ")
    assert clock(None, NOW) == ""
    assert lasted("2026-11-21T06:00:00Z", None, NOW) == "10.0s"
    assert lasted("2026-11-21T06:00:00Z", "2026-11-21T06:00:01.5Z", NOW) == "1.5s"
    assert lasted("2026-11-21T06:01:00Z", None, NOW) == "0s"  # the clocks of two machines differ
    assert (plural(1, "task"), plural(1200, "task")) == ("1 task", "1,200 tasks")


def test_counts_of_states_that_look_alike_are_one_number() -> None:
    counts = {"SUCCEEDED": 1200, "QUEUED": 2, "CLAIMED": 1, "WAITING": 0, "FAILED": 1}
    assert counts_text(counts).plain == "✗ 1  ✓ 1,200  ○ 3"


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [
        (12, 40, "███░░░░░░░ 30% 12 of 40 stages: count"),
        (0, 40, "░░░░░░░░░░ 0% 0 of 40 stages: count"),
        (41, 40, "██████████ 100% 41 of 40 stages: count"),
        (-1, 40, "░░░░░░░░░░ 0% -1 of 40 stages: count"),
        (1234, None, "1,234 stages: count"),
        (3, 0, "3 stages: count"),
    ],
)
def test_how_far_a_task_is_stands_behind_it(done: float, total: float | None, text: str) -> None:
    progress: ProgressOut = {
        "task_instance_id": 5,
        "done": done,
        "total": total,
        "unit": "stages",
        "label": "co\x1b[2Junt",
        "at": "2026-11-21T06:00:05Z",
    }
    assert bar_text(progress) == text
    run = instance(attempt("clean", "RUNNING", id=5), attempt("next", "WAITING", "clean", id=6))
    lines = shown(tasks_table(run, NOW, 200, progress=[progress]))
    assert lines[1].endswith(text)
    assert "stages" not in lines[2]


def test_a_run_is_a_tree_with_attempts_reasons_and_other_parents() -> None:
    run = instance(
        attempt("fetch", "SUCCEEDED", id=1, worker="w1", finished_at="2026-11-21T06:00:01Z",
                started_at="2026-11-21T06:00:00Z"),
        attempt("clean", "FAILED", "fetch", id=2, reason="exit code 3"),
        attempt("clean", "RUNNING", "fetch", id=5, attempt=2, started_at="2026-11-21T06:00:05Z"),
        attempt("check", "WAITING", "fetch", id=3),
        attempt("report", "WAITING", "clean", "check", id=4),
    )  # fmt: skip
    started, again = clock("2026-11-21T06:00:00Z", NOW), clock("2026-11-21T06:00:05Z", NOW)
    assert shown(tasks_table(run, NOW, 200)) == [
        f"task             state        id  attempt  {'started':{len(started)}}  lasted  worker",
        f"fetch            ✓ SUCCEEDED   1           {started}    1.0s  w1",
        f"├─ clean         ● RUNNING     5        2  {again}    5.0s",
        f"│     attempt 1  ✗ FAILED      2           {'':{len(started)}}                  "
        "exit code 3",
        "└─ check         · WAITING     3",
        f"   └─ report     · WAITING     4           {'':{len(started)}}                  "
        "also after clean",
    ]
    assert head_text(run, NOW).plain == "p/w  instance 7  version 3  ● RUNNING  10.0s"
    assert progress_text(run).plain == "2 of 5 tasks  ✗ 1  ✓ 1  ● 1  · 2"


def test_error_line_of_a_log_stands_behind_the_reason_unless_that_says_it() -> None:
    run = instance(
        attempt("a", "FAILED", id=1, reason="timed out after 1m", error_line="OSError: no disk"),
        attempt(
            "b", "FAILED", id=2, reason="exit code 1: KeyError: 'a'", error_line="KeyError: 'a'"
        ),
        attempt("c", "LOST", id=3, error_line="java.lang.OutOfMemoryError"),
    )
    lines = shown(tasks_table(run, NOW, 200))
    assert lines[1].endswith(" timed out after 1m: OSError: no disk")
    assert lines[2].endswith(" exit code 1: KeyError: 'a'")
    assert lines[3].endswith(" java.lang.OutOfMemoryError")


def test_attempts_show_what_they_used_where_there_is_room() -> None:
    used = attempt("a", "FAILED", id=1, reason="exit code 1", cpu_s=0.251, max_rss_kb=12_390)
    long = attempt("b", "SUCCEEDED", id=2, cpu_s=3_700.0, max_rss_kb=5 << 20)
    old = attempt("c", "SUCCEEDED", id=3)
    lines = shown(attempts_table([used, long, old], NOW, 200, of_one=True), 200)
    assert lines[0].split() == ["id", "task", "attempt", "state", "cpu", "memory"]
    assert re.search(r" 0\.25 s +12\.1 MiB +exit code 1$", lines[1])
    assert re.search(r" 1h 02m +5,120\.0 MiB$", lines[2])
    assert lines[3].endswith("✓ SUCCEEDED")
    assert shown(attempts_table([used], NOW, 40, of_one=True), 40)[0].split() == [
        "id", "task", "attempt", "state"
    ]  # fmt: skip


def test_narrow_terminals_lose_columns_before_meaning() -> None:
    run = instance(
        attempt("a", "FAILED", worker="worker-with-a-long-name", reason="exit code 3",
                started_at="2026-11-21T06:00:00Z", finished_at="2026-11-21T06:00:01Z")
    )  # fmt: skip
    lines = shown(tasks_table(run, NOW, 40), 40)
    assert lines == [
        "task  state     id  lasted",
        "a     ✗ FAILED   1    1.0s  exit code 3",
    ]


def test_a_large_run_shows_what_matters_first() -> None:
    tasks = [attempt(f"t{n}", "SUCCEEDED", id=n) for n in range(50)]
    tasks += [attempt("bad", "FAILED", id=90), attempt("busy", "RUNNING", id=91)]
    lines = shown(tasks_table(instance(*tasks), NOW, 100, rows=4), 100)
    assert [line.split()[0] for line in lines[1:]] == ["bad", "busy", "t0", "t1"]


def test_cells_are_never_read_as_markup() -> None:
    grid = TextTable(["a", "b~"])
    grid.add("[bold]x[/bold]", "[/]")
    assert shown(grid.table(100)) == ["a               b", "[bold]x[/bold]  [/]"]


NUMBERS = st.text("7é漢", max_size=12)
CELLS = st.text("ab é漢[]", max_size=12)


@given(
    st.lists(st.tuples(NUMBERS, CELLS, st.text("x 漢yz\n\t", max_size=70)), min_size=1, max_size=5),
    st.integers(40, 90),
)
def test_lines_are_what_rich_would_have_made(rows: list[tuple[str, ...]], width: int) -> None:
    grid = TextTable(["number>", "name", "reason~"])
    for number, name, reason in rows:
        grid.add(number, Text(name, "red"), reason)
    indexes = [i for i in range(3) if any(cells[i] for cells in rows)]
    assert shown(grid.table(width), width) == shown(grid._whole(indexes), width)


def test_colours_stay_with_their_cells() -> None:
    grid = TextTable(["number>", "state"])
    grid.add("7", Text.assemble(("✗", "bold"), " FAILED", style="red"))
    file = io.StringIO()
    Console(file=file, width=40, color_system="standard", force_terminal=True).print(grid.table(40))
    assert file.getvalue().splitlines()[1] == "     7  \x1b[1;31m✗\x1b[0m\x1b[31m FAILED\x1b[0m"


def test_empty_tables_are_empty() -> None:
    assert shown(TextTable(["a", "b"]).table(100)) in ([], [""])


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain ü ✓\n\ttab\r\n", "plain ü ✓\n\ttab\r\n"),
        (
            "\x1b[31mred\x1b[0m \x1b[38;5;12mblue\x1b[m",
            "\x1b[31mred\x1b[0m \x1b[38;5;12mblue\x1b[m",
        ),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]52;c;aGVsbG8=\x1b\\x", "x"),
        ("\x1bPq#0\x1b\\x", "x"),
        ("\x1bcreset", "reset"),
        ("\x9b2Jx", "2Jx"),
        ("a\x00\x07\x08b\x7f", "ab"),
        ("\x1b[?1049hx", "x"),
    ],
)
def test_text_of_tasks_cannot_command_the_terminal(text: str, seen: str) -> None:
    assert harmless(text) == seen


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ApiProblem(404, "not-found", "t", "d"), ExitStatus.NOT_FOUND),
        (ApiProblem(422, "invalid-definition", "t", "d"), ExitStatus.USAGE),
        (ApiProblem(409, "conflict", "t", "d"), ExitStatus.FAILED),
        (ApiProblem(401, "unauthorized", "t", "d"), ExitStatus.UNREACHABLE),
        (ApiProblem(503, "database-unavailable", "t", "d"), ExitStatus.UNREACHABLE),
        (ApiProblem(500, "internal-error", "t", "d"), ExitStatus.FAILED),
        (ApiUnreachable("u", "r", "h"), ExitStatus.UNREACHABLE),
        (NoCluster("x"), ExitStatus.UNREACHABLE),
        (NotFound("x"), ExitStatus.NOT_FOUND),
        (CommandRefused("PAUSE", "x"), ExitStatus.FAILED),
        (InvalidDefinition([]), ExitStatus.USAGE),
        (ShoalError("x"), ExitStatus.FAILED),
    ],
)
def test_every_error_has_its_exit_status(error: ShoalError, status: ExitStatus) -> None:
    assert exit_status(error) == status
    assert f"{int(status)} " in EPILOG


def test_a_problem_tells_the_fields_that_its_detail_does_not() -> None:
    errors = [FieldProblem("tasks[0]", "is wrong"), FieldProblem("name", "is told above")]
    problem = ApiProblem(422, "k", "title", "name: is told above", errors)
    assert str(problem) == "name: is told above\n  tasks[0]: is wrong"


def test_what_works_for_a_task_is_named() -> None:
    one = {"items": [None], "children": {"0": {"state": "RUNNING", "instance": 18}}}
    assert children_text(attempt("s", "RUNNING", detail=one)) == "instance 18 RUNNING"
    states = ["SUCCEEDED", "STARTING", *["PAUSED"] * 4]
    children = {
        str(i): {"state": state} | ({} if state == "STARTING" else {"instance": 20 + i})
        for i, state in enumerate(states)
    }
    many = attempt("m", "RUNNING", detail={"items": ["x"] * 9, "children": children})
    expected = (
        "1 of 9 items succeeded, instance 22 PAUSED, instance 23 PAUSED, instance 24 PAUSED, 1 more"
    )
    assert children_text(many) == expected
    assert children_text(attempt("a", "RUNNING")) == ""


HOSTILE = "ok \x1b]52;c;aGVsbG8=\x1b\\ \x1b]0;OWNED\x07 \x1b[1A\x1b[2K\x9b2J\rover\x07"


def test_nothing_that_is_printed_can_command_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is printed: a text, a table, a message, an error, JSON."""
    monkeypatch.setattr(output, "out", lambda: output._console(stderr=False))
    monkeypatch.setattr(output, "err", lambda: output._console(stderr=True))
    grid = TextTable(["reason~", "name"])
    grid.add(HOSTILE, Text(HOSTILE, "red"))
    output.out().print(HOSTILE)
    output.out().print(Text(HOSTILE), soft_wrap=True)
    output.out().print(grid.table(40))
    output.say(HOSTILE)
    output.tell_error(ShoalError(HOSTILE))
    output.print_json({"reason": HOSTILE})
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        assert "ok" in text
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", text), ascii(text)


def test_a_long_wait_is_one_line_however_often_it_has_looked() -> None:
    looks = [
        attempt("wait", "RESCHEDULED", attempt=number, reason="it is not there")
        for number in range(1, 400)
    ]
    waits = attempt(
        "wait",
        "DELAYED",
        attempt=400,
        reason="it is not there",
        looks=399,
        due_at="2026-11-21T06:01:00Z",
    )
    lines = shown(tasks_table(instance(*looks, waits), NOW, 200))
    assert len(lines) == 2
    assert "↻ DELAYED" in lines[1]
    assert "399 looks, the next at " in lines[1]
    assert lines[1].endswith("it is not there")
