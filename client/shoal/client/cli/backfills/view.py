"""How backfills look: plans, dates, progress."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from shoal.client.cli.terminal.appearance import (
    clock,
    counts_text,
    lasted,
    plural,
    stamp,
    state_text,
)

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from shoal.client.rest.operations.generated.types import BackfillOut, BackfillRunOut, PlannedOut

DONE = ("SUCCEEDED", "FAILED", "SKIPPED", "CANCELLED")  # states of a date that has ended


def backfills_table(found: "Iterable[BackfillOut]", width: int) -> "Table":
    """Return a line for each backfill."""
    from rich.text import Text

    from shoal.client.cli.terminal.tables import TextTable

    now = datetime.now(UTC)
    shown = TextTable(["id>", "workflow", "state", "created", "lasted>", "dates", "~"])
    for item in found:
        shown.add(
            str(item["id"]),
            Text.assemble((f"{item['project']}/", "dim"), item["workflow"]),
            state_text(item["state"]),
            clock(item["created_at"], now),
            lasted(item["created_at"], item["finished_at"], now),
            counts_text(item["counts"]),
            Text(item["reason"] or "", "dim"),
        )
    return shown.table(width, ("created", "lasted"))


def head_text(item: "BackfillOut") -> "Text":
    """Return the line above a backfill: what, state, how long."""
    from rich.text import Text

    now = datetime.now(UTC)
    text = Text.assemble(
        (f"{item['project']}/", "dim"),
        (item["workflow"], "bold"),
        f"  backfill {item['id']}  ",
        state_text(item["state"]),
        f"  {lasted(item['created_at'], item['finished_at'], now)}  ",
        counts_text(item["counts"]),
    )
    if item["reason"]:
        text.append(f"\n{item['reason']}")
    return text


def request_text(request: Mapping[str, Any]) -> "Text":
    """Return the request in one line."""
    from rich.text import Text

    left_out = ("project", "workflow")
    parts = [f"{key}={_plain(value)}" for key, value in request.items() if key not in left_out]
    return Text("  ".join(parts), "dim")


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}:{one}" for key, one in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def runs_table(runs: "Iterable[BackfillRunOut]", width: int) -> "Table":
    """Return a line for each date."""
    from rich.text import Text

    from shoal.client.cli.terminal.tables import TextTable

    shown = TextTable(["number>", "date", "workflow", "state", "tries>", "instance>", "~"])
    for run in runs:
        shown.add(
            str(run["position"]),
            run["logical_time"],
            Text.assemble((f"{run['project']}/", "dim"), run["workflow"]),
            state_text(run["state"]),
            str(run["tries"] or ""),
            str(run["instance_id"] or ""),
            Text(run["reason"] or "", "dim"),
        )
    return shown.table(width, ("tries", "number"))


def plan_table(runs: "Iterable[PlannedOut]", width: int) -> "Table":
    """Return a line for each date of a plan."""
    from rich.text import Text

    from shoal.client.cli.terminal.tables import TextTable

    shown = TextTable(["number>", "date", "workflow", "~"])
    for run in runs:
        skipped = run["skipped"]
        shown.add(
            str(run["position"]),
            run["logical_time"],
            Text.assemble((f"{run['project']}/", "dim"), run["workflow"]),
            Text(f"left out: {skipped}" if skipped else "runs", "dim" if skipped else ""),
        )
    return shown.table(width, ("number",))


class BackfillProgress:
    """Shows how far a backfill has come: a bar on a terminal, else a line for each change."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task = None if bar is None else bar.add_task("", total=None)
        self._said: tuple[str, Any] | None = None

    def show(self, item: "BackfillOut") -> None:
        """Show how it is now."""
        counts = item["counts"]
        done = sum(counts.get(state, 0) for state in DONE)
        if self._bar is not None:
            self._bar.update(self._task, total=item["total"], completed=done)
        elif (item["state"], counts) != self._said:
            self._said = (item["state"], counts)
            self._say(item, done)

    @staticmethod
    def _say(item: "BackfillOut", done: int) -> None:
        from shoal.client.cli.terminal.output import say

        counts = item["counts"]
        text = f"{item['state']:<10} {done} of {plural(item['total'], 'date')} done"
        for state, word in (("STARTED", "under way"), ("FAILED", "failed")):
            if counts.get(state):
                text += f", {counts[state]} {word}"
        say(f"{stamp(datetime.now(UTC))} {text}")


@contextmanager
def progress_of(backfill_id: int) -> Iterator[BackfillProgress]:
    """Show the progress of a backfill on standard error while the block runs."""
    from shoal.client.cli.terminal.output import err, progress

    with progress(f"backfill {backfill_id}") as bar:
        yield BackfillProgress(bar if err().is_terminal else None)
