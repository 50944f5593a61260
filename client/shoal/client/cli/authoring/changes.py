"""Plans, comparisons and what hangs on a workflow, for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.client.cli.terminal.output import out, say

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import (
        ComparisonOut,
        HangingOut,
        NamedOut,
        SchedulePlanOut,
        WorkflowPlanOut,
    )

_STYLES = {"+": "green", "-": "red", "@": "dim"}


def show_comparison(found: "ComparisonOut") -> None:
    """Print what differs: the text, or the tasks if that is too long."""
    from rich.text import Text

    if found["text"] is None:
        say("the texts are too long to be compared line by line; the tasks:")
        for mark, names in (("+", found["tasks_added"]), ("-", found["tasks_removed"])):
            for name in names:
                out().print(Text(f"{mark} {name}", _STYLES[mark]))
        for task in found["tasks_changed"]:
            paths = ", ".join(change["path"] for change in task["changes"])
            out().print(Text(f"~ {task['task']}: {paths}", "yellow"))
        return
    for line in found["text"].splitlines():
        out().print(Text(line, _STYLES.get(line[:1], "")), soft_wrap=True)


def show_plan(found: "WorkflowPlanOut") -> None:
    """Print what publishing would do."""
    name = f"{found['project']}/{found['name']}"
    if not found["created"]:
        say(f"{name} would stay as it is, version {found['version']}")
        return
    show_comparison(found["comparison"])
    for schedule in found["schedules"]:
        _show_schedule(schedule)
    show_hanging(found["hanging"])
    say(f"{name} would be version {found['version']}; nothing was published")


def _show_schedule(found: "SchedulePlanOut") -> None:
    from rich.text import Text

    for mark, one in (("-", found["before"]), ("+", found["after"])):
        if one is not None and found["change"] != "kept":
            times = ", ".join(one["next_fire_times"][:3]) or "never"
            line = f"{mark} schedule {one['cron']} ({one['timezone']}): {times}"
            out().print(Text(line, _STYLES[mark]), soft_wrap=True)


def show_hanging(found: "HangingOut") -> None:
    """Print what hangs on a workflow, if anything does."""
    from shoal.client.cli.terminal.appearance import plural

    if found["open_runs"]:
        ids = ", ".join(map(str, found["open_run_ids"]))
        say(f"{plural(found['open_runs'], 'open run')}: {ids}")
    for count, what in ((found["backfills"], "backfill"), (found["drafts"], "draft")):
        if count:
            say(plural(count, what))
    show_named(found["downstream"], found["hidden"])


def show_named(named: "Sequence[NamedOut]", hidden: int) -> None:
    """Print the tasks of other workflows that name one."""
    for one in named:
        say(f"named by {one['project']}/{one['workflow']}, task {one['task']} ({one['kind']})")
    if hidden:
        say(f"named by {hidden} more in projects that you do not see")
