"""One run on the screen: its tasks as a tree with states, times and reasons."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from shoal.client.cli.runs.graph import draw
from shoal.client.cli.terminal.appearance import (
    clock,
    counts_text,
    failure_text,
    lasted,
    one_line,
    parse_time,
    plural,
    state_text,
)
from shoal.core.timing.durations import format_duration

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from shoal.client.rest.operations.generated.types import (
        InstanceDetail,
        InstanceOut,
        InstanceTask,
        ProgressOut,
        TodayRun,
    )

# Columns that a narrow terminal does without, the first one first.
_SPARE = ("worker", "started", "attempt", "id")
_BAR_WIDTH = 10  # characters
_MOST_CHILDREN = 3  # of a MAP task, by name
# What to show first when there is no room for all.
_INTEREST = (
    *("FAILED", "LOST", "KILLED", "RUNNING", "CLAIMED", "UP_FOR_RETRY", "PAUSED"),
    *("DELAYED", "SUCCEEDED", "QUEUED", "SKIPPED", "WAITING"),
)


def head_text(instance: "InstanceOut", now: datetime) -> "Text":
    """Return the line above a run: what, state, how long."""
    from rich.text import Text

    began = instance["started_at"]
    text = Text.assemble(
        (f"{instance['project']}/", "dim"),
        (instance["workflow"], "bold"),
        f"  instance {instance['id']}  version {instance['version']}  ",
        state_text(instance["state"]),
    )
    if began:
        text.append(f"  {lasted(began, instance['finished_at'], now)}")
    if instance.get("is_late"):
        text.append("  late", "yellow")
    return text


def expected_facts(instance: "InstanceOut | TodayRun", now: datetime) -> list[str]:
    """Return when an open run is expected to end, and that it takes longer than usual."""
    found = []
    if instance.get("expected_end_at"):
        found.append(f"expected to end {clock(instance['expected_end_at'], now)}")
    late_after = parse_time(instance.get("late_after_at"))
    if late_after is not None and now > late_after:
        by = format_duration((now - late_after).total_seconds())
        found.append(f"later than usual by {by}")
    return found


def newest_attempts(tasks: "Iterable[InstanceTask]") -> "dict[str, InstanceTask]":
    """Return the newest attempt of every task, tasks in their order."""
    found: dict[str, InstanceTask] = {}
    for task in tasks:
        if task["task"] not in found or task["attempt"] > found[task["task"]]["attempt"]:
            found[task["task"]] = task
    return found


def tasks_table(
    instance: "InstanceDetail",
    now: datetime,
    width: int,
    rows: int | None = None,
    progress: "Sequence[ProgressOut]" = (),
) -> "Table":
    """Return the tasks as a tree with a line for each attempt, ``width`` characters wide.

    ``rows``: if there are more lines than that, the most interesting ones as a flat list.
    ``progress``: of running tasks.
    """
    from rich.text import Text

    from shoal.client.cli.terminal.tables import TextTable

    newest = newest_attempts(instance["tasks"])
    bars = {one["task_instance_id"]: bar_text(one) for one in progress}
    earlier: dict[str, list[InstanceTask]] = {}
    for task in instance["tasks"]:
        if task["id"] != newest[task["task"]]["id"]:
            earlier.setdefault(task["task"], []).append(task)
    shown = TextTable(["task", "state", "id>", "attempt>", "started", "lasted>", "worker", "~"])
    lines = [task for task in instance["tasks"] if task["state"] != "RESCHEDULED"]
    if rows is not None and len(lines) > rows:
        for task in _most_interesting(list(newest.values()), rows):
            why = _why(task) or bars.get(task["id"], "")
            note = "; ".join(filter(None, [looks_text(task, now), why]))
            shown.add(Text(task["task"]), *_cells(task, now), Text(note, "dim"))
        return shown.table(width, _SPARE)
    for line in draw({name: task.get("depends_on", []) for name, task in newest.items()}):
        task = newest[line.task]
        notes = [
            looks_text(task, now),
            _why(task) or bars.get(task["id"]) or children_text(task),
        ]
        if task["environment"]:
            notes.append(f"environment {task['environment']}")
        if line.also_after:
            notes.insert(0, f"also after {', '.join(line.also_after)}")
        note = "; ".join(filter(None, notes))
        label = Text.assemble((line.branch, "dim"), line.task)
        shown.add(label, *_cells(task, now), Text(note, "dim"))
        past = [old for old in earlier.get(line.task, []) if old["state"] != "RESCHEDULED"]
        for old in sorted(past, key=lambda task: -task["attempt"]):
            label = Text(f"{line.stem}attempt {old['attempt']}", "dim")
            shown.add(label, *_cells(old, now), Text(_why(old), "dim"))
    return shown.table(width, _SPARE)


def _why(task: "InstanceTask") -> str:
    return failure_text(task["reason"], task.get("error_line"))


def bar_text(progress: "ProgressOut") -> str:
    """Return how far the work of a task is: ``███░░░░░░░ 30% 12 of 40 stages: count``."""
    done, total = progress["done"], progress["total"]
    label = f": {one_line(progress['label'])}" if progress["label"] else ""
    unit = one_line(progress["unit"])
    if not total or total < 0:
        return f"{done:,.0f} {unit}{label}"
    part = min(1.0, max(0.0, done / total))
    full = int(part * _BAR_WIDTH)
    bar = "█" * full + "░" * (_BAR_WIDTH - full)
    return f"{bar} {part:.0%} {done:,.0f} of {total:,.0f} {unit}{label}"


def looks_text(task: "InstanceTask", now: datetime) -> str:
    """Return how a task that waits for something stands: ``3 looks, the next at 12:01:00 CET``."""
    looks = task.get("looks", 0)
    if not looks or task["finished_at"]:
        return ""
    due_at = task.get("due_at") if task["state"] == "DELAYED" else None
    following = f", the next at {clock(due_at, now)}" if due_at else ""
    return plural(looks, "look") + following


def children_text(task: "InstanceTask") -> str:
    """Return which instances work for a task: ``instance 18 RUNNING``; of many how they stand."""
    detail = task.get("detail", {})
    children = list(detail.get("children", {}).values())
    if not children:
        return ""
    items = len(detail["items"])
    done = sum(child["state"] == "SUCCEEDED" for child in children)
    counted = f"{done} of {items} items succeeded" if items > 1 else ""
    others = [c for c in children if c["state"] != "SUCCEEDED" or items == 1]
    named = [f"instance {c['instance']} {c['state']}" for c in others if c.get("instance")]
    more = f"{len(named) - _MOST_CHILDREN} more" if len(named) > _MOST_CHILDREN else ""
    return ", ".join(filter(None, [counted, *named[:_MOST_CHILDREN], more]))


def _cells(task: "InstanceTask", now: datetime) -> "list[Text]":
    from rich.text import Text

    started, finished = task["started_at"], task["finished_at"]
    return [
        state_text(task["state"]),
        Text(str(task["id"]), "dim"),
        Text(str(task["attempt"])) if task["attempt"] > 1 else Text(""),
        Text(clock(started, now), "dim"),
        Text(lasted(started, finished, now)),
        Text(task["worker"] or "", "dim"),
    ]


def _most_interesting(tasks: "Sequence[InstanceTask]", rows: int) -> "Sequence[InstanceTask]":
    def rank(task: "InstanceTask") -> tuple[int, str]:
        # Of those that have ended, the latest ones.
        ended = task["finished_at"] or ""
        newest_first = "".join(chr(0x7F - ord(c)) if ord(c) < 0x7F else c for c in ended)
        state = task["state"]
        return (_INTEREST.index(state) if state in _INTEREST else 0, newest_first)

    return sorted(tasks, key=rank)[:rows]


def progress_text(instance: "InstanceOut") -> "Text":
    """Return how far a run is: ``3 of 5 tasks  ✓ 2  ✗ 1  ● 1``."""
    from rich.text import Text

    counts = instance["task_counts"]
    total = sum(counts.values())
    ended = sum(counts.get(s, 0) for s in ("SUCCEEDED", "FAILED", "KILLED", "LOST", "SKIPPED"))
    return Text.assemble(f"{ended:,} of {total:,} tasks  ", counts_text(counts))
