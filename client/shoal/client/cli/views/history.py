"""``shoal history``: what has happened, and who asked for it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.client.cli.terminal.options import (
    Data,
    Json,
    Limit,
    Project,
    in_utc,
    page_of,
    workflow_filter,
)

if TYPE_CHECKING:
    from rich.table import Table

    from shoal.client.rest.operations.generated.types import HappenedOut

# What stands elsewhere in the line of an event, and what says nothing to people.
_IN_LINE = ("workflow", "task", "type", "state", "reason")
_SAID = frozenset({*_IN_LINE, "previous", "reason_said", "handled_at", "digest"})


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Runs")(history)


def history(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Only of this workflow, also PROJECT/NAME."),
    ] = None,
    instance_id: Annotated[
        int | None,
        typer.Option("--instance", metavar="ID", min=1, help="Only of this workflow instance."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND", help="Only of this kind, such as command or task.state; repeatable."
        ),
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(metavar="TIME", help="At this time (UTC) or later.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(metavar="TIME", help="Before this time (UTC).")
    ] = None,
    limit: Limit = 50,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List events, commands with who sent them, and takeovers, the latest first."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient

    kinds = _read_kinds(kind or [])
    project, workflow = workflow_filter(name, project)
    with ShoalClient.connect(data) as client:
        listed = client.pages(
            client.list_history,
            kind=kinds,
            project=project,
            workflow=workflow,
            instance_id=instance_id,
            since=in_utc(since),
            until=in_utc(until),
            limit=page_of(limit),
        )
        found = list(islice(listed, limit))
        if not found and instance_id is not None:
            # An error if it is not there, which a list does not say.
            client.get_instance(instance_id)
    if as_json:
        print_json(found)
    elif found:
        out().print(history_table(found, datetime.now(UTC), out().width))
    else:
        say("nothing of that kind has happened, as far as it is kept")


def _read_kinds(given: list[str]) -> list[Any]:
    """Return kinds as the API has them: literals. Raises BadParameter."""
    from shoal.core.runs.filters import HistoryKind

    known = [str(one.value) for one in HistoryKind]
    for kind in given:
        if kind not in known:
            raise typer.BadParameter(
                f"{kind} is not a kind; there are {', '.join(known)}", param_hint="--kind"
            )
    return given


def history_table(found: "list[HappenedOut]", now: datetime, width: int) -> "Table":
    """Return a line for each thing that happened, ``width`` characters wide."""
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.tables import TextTable

    shown = TextTable(["at", "kind", "workflow", "instance>", "task", "by", "what~"])
    for one in found:
        data = one["data"]
        workflow = str(data.get("workflow") or "")
        home = f"{one['project']}/" if one["project"] and workflow else one["project"] or ""
        shown.add(
            clock(one["at"], now),
            Text(one["kind"], "dim"),
            Text.assemble((home, "dim"), workflow),
            "" if one["instance_id"] is None else str(one["instance_id"]),
            Text(str(data.get("task") or "")),
            one["by"] or "",
            what_text(one["kind"], data),
        )
    return shown.table(width, ("kind", "task"))


def what_text(kind: str, data: Mapping[str, Any]) -> str:
    """Return what happened: ``RUNNING, worker w1``, ``STOP REFUSED: it has ended``."""
    if kind == "partition.takeover":
        before = data.get("previous_owner") or "no owner"
        return f"partition {data.get('partition')} from {before} to {data.get('owner')}"
    # Of states the newest one is enough; what has a column of its own is not said again.
    told = [" ".join(str(data[name]) for name in ("type", "state") if data.get(name))]
    told += [
        f"{name.replace('_', ' ')} {value}"
        for name, value in data.items()
        if name not in _SAID and isinstance(value, str | int | float)
    ]
    text = ", ".join(filter(None, told))
    reason = data.get("reason")
    return f"{text}: {reason}" if text and reason else reason or text
