"""``shoal backfills``: list them, show one, pause, resume, cancel, retry."""

from itertools import islice
from typing import Annotated, Any

import typer

from shoal.client.cli.backfills.options import Wait
from shoal.client.cli.terminal.options import (
    Data,
    Json,
    Limit,
    Project,
    States,
    page_of,
    read_states,
    workflow_filter,
)

group = typer.Typer(
    name="backfills", help="Backfills and how far they have come.", invoke_without_command=True
)

BackfillId = Annotated[int, typer.Argument(metavar="ID", min=1, help="Id of a backfill.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Backfills")


@group.callback()
def backfills(
    context: typer.Context,
    workflow: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only for this workflow, also PROJECT/NAME."),
    ] = None,
    state: States = None,
    limit: Limit = 20,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List backfills, newest first."""
    if context.invoked_subcommand is not None:
        return
    from shoal.client.cli.backfills.view import backfills_table
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient
    from shoal.core.backfill.request import BackfillState

    states = read_states(state, BackfillState)
    project, workflow = workflow_filter(workflow, project)
    with ShoalClient.connect(data) as client:
        listed = client.pages(
            client.list_backfills,
            project=project,
            workflow=workflow,
            state=states,
            limit=page_of(limit),
        )
        found = list(islice(listed, limit))
    if as_json:
        print_json(found)
    elif not found:
        say("no backfills; start one with `shoal backfill NAME --from DATE --to DATE`")
    else:
        out().print(backfills_table(found, out().width))


@group.command()
def show(
    backfill_id: BackfillId,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="How many dates at most.")
    ] = 100,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show a backfill and its dates."""
    from shoal.client.cli.backfills.view import head_text, request_text, runs_table
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_backfill(backfill_id)
        runs = list(
            islice(
                client.pages(client.list_backfill_runs, backfill_id, limit=page_of(limit)), limit
            )
        )
    if as_json:
        print_json({**found, "runs": runs})
        return
    out().print(head_text(found))
    out().print(request_text(found["request"]), soft_wrap=True)
    out().print()
    out().print(runs_table(runs, out().width))
    if found["total"] > len(runs):
        say(f"… {found['total'] - len(runs):,} more dates; see --limit", "dim")


@group.command()
def pause(backfill_id: BackfillId, data: Data = None, as_json: Json = False) -> None:
    """Start no other date; what runs finishes."""
    _request("pause", backfill_id, "starts no other date", data, as_json)


@group.command()
def resume(
    backfill_id: BackfillId, wait: Wait = False, data: Data = None, as_json: Json = False
) -> None:
    """Continue a paused backfill."""
    _request("resume", backfill_id, "goes on", data, as_json, wait)


@group.command()
def cancel(backfill_id: BackfillId, data: Data = None, as_json: Json = False) -> None:
    """Stop what runs, and start no other date."""
    _request("cancel", backfill_id, "is being cancelled", data, as_json)


@group.command()
def retry(
    backfill_id: BackfillId, wait: Wait = False, data: Data = None, as_json: Json = False
) -> None:
    """Run the dates again that have failed or were cancelled."""
    _request("retry", backfill_id, "runs again what did not succeed", data, as_json, wait)


def _request(
    request: Any, backfill_id: int, done: str, data: Any, as_json: bool, wait: bool = False
) -> None:
    from shoal.client.cli.backfills.start import follow
    from shoal.client.cli.runs.progress import require_done
    from shoal.client.cli.terminal.output import print_result, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        outcome = client.outcome(client.request_backfill(backfill_id, request))
        require_done(outcome, as_json)
        text = f"backfill {backfill_id} {done}"
        if wait:
            say(text)
            follow(client, backfill_id, as_json)
        else:
            print_result(text, outcome, as_json=as_json)
