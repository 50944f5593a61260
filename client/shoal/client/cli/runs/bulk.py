"""``shoal bulk``: the same request to many runs, seen before it is sent."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.client.cli.terminal.options import (
    Data,
    Json,
    Project,
    States,
    read_states,
    workflow_filter,
)

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import BulkItem, BulkOut


class BulkRequest(StrEnum):
    """What can be asked of many instances at once."""

    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    RECOVER = "recover"
    RERUN = "rerun"


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Runs")(bulk)


def bulk(
    request: Annotated[BulkRequest, typer.Argument(metavar="REQUEST", help=", ".join(BulkRequest))],
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="[ID]…", min=1, help="Ids of instances.")
    ] = None,
    workflow: Annotated[
        str | None,
        typer.Option(
            "--workflow", "-w", metavar="NAME", help="Of this workflow, also PROJECT/NAME."
        ),
    ] = None,
    state: States = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", "-l", metavar="KEY[=VALUE]", help="With this label; repeatable."),
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="In the workflow's name or the reason.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Do not ask; without it, only the preview.")
    ] = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Ask the same of many instances: the given ones, or all that the options mean, 500 at most.

    Shows what would happen to each. With --yes exactly that is asked for; nothing if others would
    be touched by then.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.errors import CommandRefused
    from shoal.client.rest.client import ShoalClient
    from shoal.core.runs.states import WorkflowState

    states = read_states(state, WorkflowState)
    project, name = workflow_filter(workflow, project)
    kind: Any = request.name  # a literal of the API
    with ShoalClient.connect(data) as client:
        seen = client.create_bulk_commands(
            {"type": kind, "ids": ids or None},
            dry_run=True,
            project=project,
            workflow=name,
            state=states,
            label=label,
            text=text,
        )
        done = seen
        if yes and seen["items"]:
            shown = [one["id"] for one in seen["items"]]
            done = client.create_bulk_commands(
                {"type": kind, "ids": shown, "digest": seen["digest"]}
            )
    if as_json:
        print_json(done)
    else:
        _show(request, seen, done if yes else None)
        if not yes and seen["items"]:
            say("nothing was asked for; --yes does")
    failed = [one for one in done["items"] if one["problem"] is not None]
    if failed:
        raise CommandRefused(kind, f"{len(failed)} of {len(done['items'])} could not be asked")


def _show(request: BulkRequest, seen: "BulkOut", done: "BulkOut | None") -> None:
    from shoal.client.cli.terminal.output import out, say
    from shoal.client.cli.terminal.tables import TextTable

    if not seen["items"]:
        say("no instances")
        return
    shown = TextTable(["id>", str(request), "~"])
    results = {one["id"]: one for one in (done or seen)["items"]}
    for item in seen["items"]:
        result = results[item["id"]]
        told = "asked" if result["command_id"] else "no" if _why(item) else "would"
        shown.add(str(item["id"]), told, _why(result) or _why(item) or _effect(item))
    out().print(shown.table(out().width))
    if seen["is_more"]:
        say("there may be more: repeat the command when these are done")


def _why(item: "BulkItem") -> str:
    if item["problem"] is not None:
        return item["problem"]["detail"]
    preview = item["preview"]
    return "" if preview is None else preview["refusal"] or ""


def _effect(item: "BulkItem") -> str:
    preview = item["preview"]
    if preview is None or preview["state"] is None:
        return ""
    tasks = preview["tasks"] or []
    names = ", ".join(one["task"] for one in tasks[:5])
    more = len(tasks) - 5 + preview["more_tasks"]
    told = f": {names}" + (f" and {more} more" if more > 0 else "") if names else ""
    return f"becomes {preview['state']}{told}"
