"""``shoal queue`` and ``shoal takeovers``: what waits for workers, and which partitions moved."""

from datetime import UTC, datetime
from itertools import islice
from typing import Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json, Limit


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for function in (queue, takeovers):
        app.command(rich_help_panel="Cluster")(function)


def queue(
    group: Annotated[
        str | None,
        typer.Argument(metavar="GROUP", help="Only what waits for this worker group."),
    ] = None,
    limit: Limit = 50,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List tasks that wait for a worker, in the order in which workers claim them."""
    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(islice(client.pages(client.list_queue_entries, group=group), limit))
    if as_json:
        print_json(found)
        return
    if not found:
        say("nothing waits for a worker" + (f" of the group {group}" if group else ""))
        return
    from rich.text import Text

    now = datetime.now(UTC)
    shown = TextTable(["group", "place>", "task", "instance>", "priority", "queued"])
    for one in found:
        if one["task"] is None:
            name = Text("of a project that you may not see", "dim")
        else:
            name = Text.assemble((f"{one['project']}/{one['workflow']} ", "dim"), one["task"])
        shown.add(
            Text(one["group"]),
            "" if one["position"] is None else f"{one['position']:,}",
            name,
            str(one["workflow_instance_id"] or ""),
            f"{one['priority']} {one['task_priority']}".lower(),
            clock(one["queued_at"], now) if one["queued_at"] else "",
        )
    out().print(shown.table(out().width, ("priority", "queued")))


def takeovers(limit: Limit = 20, data: Data = None, as_json: Json = False) -> None:
    """List which masters have taken which partitions from which, newest first."""
    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(islice(client.pages(client.list_takeovers), limit))
    if as_json:
        print_json(found)
        return
    if not found:
        say("no partition has changed its owner yet")
        return
    from rich.text import Text

    now = datetime.now(UTC)
    shown = TextTable(["at", "partition>", "owner", "before", "epoch>"])
    for one in found:
        shown.add(
            clock(one["at"], now),
            str(one["partition"]),
            Text(one["owner"] or ""),
            Text(one["previous_owner"] or "", "dim"),
            str(one["epoch"]),
        )
    out().print(shown.table(out().width, ("epoch", "before")))
