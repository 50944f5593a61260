"""``shoal run --dry-run``: the run that a start would make."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from shoal.client.rest.operations.generated.types import PlannedTask, StartPreview


def show_preview(found: "StartPreview", as_json: bool) -> None:
    """Print what would run, and what each task would get."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock, plural
    from shoal.client.cli.terminal.output import out, print_json, say

    if as_json:
        print_json(found)
        return
    console = out()
    console.print(
        Text.assemble(
            (f"{found['project']}/", "dim"),
            (found["workflow"], "bold"),
            f"  version {found['version']}  "
            f"for {clock(found['logical_time'], datetime.now(UTC), found['timezone'])}  "
            f"priority {found['priority']}",
        ),
        soft_wrap=True,
    )
    facts = [f"{key}={value}" for key, value in found["parameters"].items()]
    facts += [f"label {key}={value}" for key, value in found["labels"].items()]
    if facts:
        console.print(Text("  ".join(facts), "dim"), soft_wrap=True)
    console.print()
    console.print(tasks_table(found["tasks"], console.width))
    running = [task for task in found["tasks"] if task["runs"]]
    for task in running:
        console.print()
        console.print(Text(task["task"], "bold"), soft_wrap=True)
        for line in _lines(task):
            console.print(Text(f"  {line}"), soft_wrap=True)
    say(f"{plural(len(running), 'task')} would run; nothing was started", "dim")


def tasks_table(tasks: "list[PlannedTask]", width: int) -> "Table":
    """Return the tasks as a tree, ``width`` characters wide."""
    from rich.text import Text

    from shoal.client.cli.runs.graph import draw
    from shoal.client.cli.terminal.tables import TextTable

    by_name = {task["task"]: task for task in tasks}
    shown = TextTable(["task", "type", "group", "~"])
    for line in draw({name: task["depends_on"] for name, task in by_name.items()}):
        task = by_name[line.task]
        notes = [] if task["runs"] else ["would not run"]
        notes += [f"also after {', '.join(line.also_after)}"] if line.also_after else []
        shown.add(
            Text.assemble((line.branch, "dim"), (line.task, "" if task["runs"] else "dim")),
            task["type"],
            task["worker_group"],
            Text("; ".join(notes), "dim"),
        )
    return shown.table(width, ("group", "type"))


def _lines(task: "PlannedTask") -> "list[str]":
    """Return what a task gets, as lines."""
    given = task["rendered"]
    if given is None:
        return ["what it gets is shown of 200 tasks only; --task names this one"]
    lines = [] if given["problem"] is None else [given["problem"]]
    for name, value in given["params"].items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *rest = text.splitlines() or [""]
        lines += [f"{name}: {first}", *(f"  {line}" for line in rest)]
    lines += [f"${{{name}}} = {text}" for name, text in sorted(given["parameters"].items())]
    return lines
