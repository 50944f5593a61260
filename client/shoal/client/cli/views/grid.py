"""``shoal grid`` and ``shoal days``: the runs of a workflow by tasks, and by days."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from shoal.client.cli.terminal.options import Data, Json, Project, WorkflowName, find_workflow

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from shoal.client.rest.operations.generated.types import DayOut, GridOut, GridRun

_MOST_NAMES = 20  # tasks that are named at a time
_MOST_FAILED = 3  # of a run
_MOST_RUNS, _MOST_DAYS = 100, 400  # of one answer
# Cells whose tasks are named: what has failed, and what is at work.
_NAMED = ("FAILED", "LOST", "KILLED", "RUNNING", "CLAIMED", "UP_FOR_RETRY")


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for command in (grid, days):
        app.command(rich_help_panel="Runs")(command)


def grid(
    name: WorkflowName,
    by_start: Annotated[
        bool, typer.Option("--by-start", help="The latest start first, not the latest time.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=_MOST_RUNS, help="How many runs at most.")
    ] = 20,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the runs of a workflow with a letter for the state of each task.

    The latest logical time comes first.
    """
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        home, name = find_workflow(client, name, project)
        sort: Literal["-created_at", "-logical_time"] = (
            "-created_at" if by_start else "-logical_time"
        )
        found = client.get_workflow_grid(home, name, sort=sort, limit=limit)
    if as_json:
        print_json(found)
        return
    if not found["runs"]:
        say(f"{home}/{name} has no runs; `shoal run {home}/{name}` starts one")
        return
    out().print(runs_table(found, datetime.now(UTC), out().width))
    say(f"tasks: {_names(found)}", "dim")
    used = {cell for run in found["runs"] for cell in run["cells"]}
    cells = [f"{one['cell']} {one['means']}" for one in found["legend"] if one["cell"] in used]
    say("  ".join(cells), "dim")
    if found["next"]:
        say(f"there are more runs: `shoal instances {home}/{name} --sort {sort}` lists all", "dim")


def runs_table(found: "GridOut", now: datetime, width: int) -> "Table":
    """Return a line for each run, ``width`` characters wide."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock, lasted, state_text
    from shoal.client.cli.terminal.tables import TextTable

    shown = TextTable(["run>", "for", "version>", "state", "lasted>", "tasks", "~"])
    for run in found["runs"]:
        shown.add(
            str(run["id"]),
            clock(run["logical_time"], now),
            Text(str(run["version"]), "dim"),
            state_text(run["state"]),
            lasted(run["started_at"], run["finished_at"], now),
            _cells(run, found),
            Text(_of_interest(run, found), "dim"),
        )
    return shown.table(width, ("version", "lasted"))


def _cells(run: "GridRun", found: "GridOut") -> "Text":
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import LOOKS

    states = {one["cell"]: one["state"] for one in found["legend"]}
    text = Text()
    for cell in run["cells"]:
        text.append(cell, LOOKS.get(states.get(cell) or "", ("", "dim"))[1])
    return text


def _of_interest(run: "GridRun", found: "GridOut") -> str:
    """Return which tasks of a run failed, and which are at work: ``FAILED load, report``."""
    states = {one["cell"]: one["state"] for one in found["legend"]}
    by_state: dict[str, list[str]] = {}
    for task, cell in zip(found["tasks"], run["cells"], strict=True):
        by_state.setdefault(states.get(cell) or "", []).append(task["name"])
    told = []
    for state in _NAMED:
        if names := by_state.get(state):
            more = f" and {len(names) - _MOST_FAILED:,} more" if len(names) > _MOST_FAILED else ""
            told.append(f"{state} {', '.join(names[:_MOST_FAILED])}{more}")
    return "; ".join(told)


def _names(found: "GridOut") -> str:
    """Return the names of tasks in the order of their letters."""
    tasks = found["tasks"]
    names = [
        one["name"] + ("" if one["is_current"] else " (of older versions)")
        for one in tasks[:_MOST_NAMES]
    ]
    more = len(tasks) - len(names)
    return ", ".join(names) + (f" and {more:,} more; --json has all" if more else "")


def days(
    name: WorkflowName,
    first: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="The first day, YYYY-MM-DD; default: until today."),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=_MOST_DAYS, help="How many days.")
    ] = 30,
    tz: Annotated[
        str | None,
        typer.Option("--tz", metavar="ZONE", help="Whose days; default: the workflow's zone."),
    ] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show how the runs of each day ended, and how many fire times have no run."""
    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        home, name = find_workflow(client, name, project)
        found = list(
            client.pages(
                client.list_workflow_days, home, name, first=first, limit=limit, timezone=tz
            )
        )
    if as_json:
        print_json(found)
    else:
        out().print(days_table(found, out().width))


def days_table(found: "list[DayOut]", width: int) -> "Table":
    """Return a line for each day, the latest first, ``width`` characters wide."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import counts_text
    from shoal.client.cli.terminal.tables import TextTable

    shown = TextTable(["day", "runs", "missing>", "~"])
    for one in reversed(found):
        is_empty = not (one["states"] or one["missing"])
        shown.add(
            Text(one["date"], "dim" if is_empty else ""),
            counts_text(one["states"]) if one["states"] else Text("–", "dim"),
            Text(f"{one['missing']:,}" if one["missing"] else "", "yellow"),
            Text("there are more than were counted" if one["is_more"] else "", "dim"),
        )
    return shown.table(width)
