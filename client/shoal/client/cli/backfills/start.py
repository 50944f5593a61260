"""``shoal backfill``: run a workflow for many dates."""

import time
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shoal.client.cli.terminal.options import Data, Json, Project, WorkflowName, find_workflow
from shoal.client.cli.terminal.selecting import Downstream, Only, Tasks, Upstream, selection_mode

if TYPE_CHECKING:
    from shoal.client.rest.backfills import BackfillJson, PlanJson
    from shoal.client.rest.client import ShoalClient

_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
_LOOK_S = 0.3  # between two reads of a backfill
_PATIENCE_S = 120.0  # an API that is started again comes back within this
_MANY_DATES = 20  # that failed, listed at the end


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Backfills")(backfill)


def backfill(
    name: WorkflowName,
    first: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="DATE",
            help="First date, such as 2026-01-01 or 2026-01-01T06:00; without an offset in the "
            "workflow's time zone.",
        ),
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", metavar="DATE", help="Last date, included.")
    ] = None,
    date: Annotated[
        list[str] | None,
        typer.Option("--date", metavar="DATE", help="Exactly this date; repeatable."),
    ] = None,
    by: Annotated[
        Literal["schedule", "day"] | None,
        typer.Option(help="The fire times, or the midnights. Default: by schedule if it has one."),
    ] = None,
    missing: Annotated[bool, typer.Option("--missing", help="Dates that never ran.")] = False,
    failed: Annotated[
        bool, typer.Option("--failed", help="Dates that ran, and not once with success.")
    ] = False,
    reprocess: Annotated[
        Literal["none", "failed", "all"] | None,
        typer.Option(help="Which dates that ran before run again. Default: none."),
    ] = None,
    parallel: Annotated[
        int, typer.Option(min=1, max=500, metavar="N", help="How many dates at a time.")
    ] = 1,
    descending: Annotated[
        bool, typer.Option("--descending", help="The newest date first.")
    ] = False,
    on_failure: Annotated[
        str | None,
        typer.Option(
            metavar="stop|continue|N",
            help="After how many failures nothing more starts. Default: stop, that is after the "
            "first, for one at a time; else continue.",
        ),
    ] = None,
    task: Tasks = None,
    only: Only = False,
    upstream: Upstream = False,
    downstream: Downstream = False,
    dependents: Annotated[
        Literal["none", "direct", "all"] | None,
        typer.Option(help="Also the workflows whose DEPENDENT tasks look for this one."),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", "--parameter", metavar="KEY=VALUE", help="A parameter; repeatable."),
    ] = None,
    priority: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="HIGHEST to LOWEST. Default: LOW.")
    ] = None,
    version: Annotated[
        int | None, typer.Option(min=1, help="Default: the newest when a date starts.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the plan, start nothing.")
    ] = False,
    wait: Annotated[
        bool, typer.Option("--wait", "-w", help="Follow it to its end; exit 0 if it succeeds.")
    ] = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Run a workflow once for each of many dates."""
    from shoal.client.cli.runs.start import parse_parameters, parse_priority
    from shoal.client.rest.client import ShoalClient

    _check(first, last, date, missing, failed, reprocess)
    fields: dict[str, Any] = {
        "first": first,
        "last": last,
        "dates": date or None,
        "by": by,
        "only": "missing" if missing else "failed" if failed else None,
        "reprocess": reprocess,
        "parallel": parallel,
        "order": "descending" if descending else None,
        "on_failure": _on_failure(on_failure),
        "tasks": task or None,
        "mode": selection_mode(task, only, upstream, downstream),
        "downstream": dependents,
        "parameters": parse_parameters(parameter or ()),
        "priority": parse_priority(priority),
        "version": version,
    }
    with ShoalClient.connect(data) as client:
        home, name = find_workflow(client, name, project)
        if dry_run:
            _show_plan(client.plan_backfill(home, name, **fields), as_json)
        else:
            _start(client, home, name, fields, wait, as_json)


def _check(
    first: str | None,
    last: str | None,
    dates: list[str] | None,
    missing: bool,
    failed: bool,
    reprocess: str | None,
) -> None:
    """Refuse at once what cannot go together."""
    if bool(dates) == bool(first or last):
        raise typer.BadParameter("say which dates: either --from and --to, or --date")
    if not dates and not (first and last):
        raise typer.BadParameter("--from and --to go together")
    if missing and failed:
        raise typer.BadParameter("--missing and --failed exclude each other")
    if reprocess and (missing or failed):
        raise typer.BadParameter("--reprocess does not go with --missing and --failed")


def _on_failure(text: str | None) -> str | int | None:
    if text is None or text in ("stop", "continue"):
        return text
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(
        f"{text!r} is none of stop, continue and a number of failures", param_hint="--on-failure"
    )


def _show_plan(plan: "PlanJson", as_json: bool) -> None:
    from shoal.client.cli.backfills.view import plan_table
    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import out, print_json, say

    if as_json:
        print_json(plan)
        return
    out().print(plan_table(plan["runs"], out().width))
    left_out = plan["total"] - plan["to_run"]
    say(f"{plural(plan['to_run'], 'run')}, {left_out} left out; nothing was started", "dim")


def _start(
    client: "ShoalClient",
    project: str,
    name: str,
    fields: dict[str, Any],
    wait: bool,
    as_json: bool,
) -> None:
    from shoal.client.cli.runs.following import require_done
    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import out, print_json, say

    command = client.start_backfill(project, name, **fields)["command"]
    assert command is not None, "it is no dry run"
    outcome = client.outcome(command)
    require_done(outcome, as_json)
    backfill_id = outcome["backfill_id"]
    assert backfill_id is not None, "the command is done"
    found = client.backfill(backfill_id)
    text = f"started backfill {backfill_id} of {project}/{name}: {plural(found['total'], 'date')}"
    if wait:
        say(text)
        follow(client, backfill_id, as_json)
    elif as_json:
        print_json(found)
    else:
        out().print(text)
        say(f"`shoal backfills show {backfill_id}` shows it", "dim")


def follow(client: "ShoalClient", backfill_id: int, as_json: bool) -> None:
    """Show a backfill until it has ended, and how. Ends with status 1 unless it succeeded."""
    from itertools import islice

    from shoal.client.cli.backfills.view import head_text, runs_table
    from shoal.client.cli.terminal.output import out, print_json, say

    try:
        ended = _watched(client, backfill_id)
    except KeyboardInterrupt:
        say(f"backfill {backfill_id} goes on; `shoal backfills cancel {backfill_id}` ends it")
        raise
    if as_json:
        print_json(ended)
    else:
        out().print(head_text(ended))
        failed = list(islice(client.backfill_runs(backfill_id, ["FAILED"]), _MANY_DATES))
        if failed:
            out().print(runs_table(failed, out().width))
    if ended["state"] != "SUCCEEDED":
        raise typer.Exit(1)


def _watched(client: "ShoalClient", backfill_id: int) -> "BackfillJson":
    from shoal.client.cli.backfills.view import progress_of

    with progress_of(backfill_id) as shown:
        while True:
            found = _patiently(client, backfill_id)
            shown.show(found)
            if found["state"] in _ENDED:
                return found
            time.sleep(_LOOK_S)


def _patiently(client: "ShoalClient", backfill_id: int) -> "BackfillJson":
    """Return the backfill; wait for an API or database that is away."""
    from shoal.client.errors import TRANSIENT, ApiProblem, ApiUnreachable

    began = time.monotonic()
    while True:
        try:
            return client.backfill(backfill_id)
        except (ApiUnreachable, ApiProblem) as error:
            lasting = isinstance(error, ApiProblem) and error.status not in TRANSIENT
            if lasting or time.monotonic() - began > _PATIENCE_S:
                raise
            time.sleep(1.0)
