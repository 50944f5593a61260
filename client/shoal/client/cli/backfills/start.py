"""``shoal backfill``: run a workflow for many dates."""

import time
from functools import partial
from typing import TYPE_CHECKING

import typer

from shoal.client.cli.backfills.options import (
    By,
    Dates,
    Dependents,
    Descending,
    DryRun,
    Failed,
    First,
    Last,
    Missing,
    OnFailure,
    Parallel,
    Priority,
    Reprocess,
    Version,
    Wait,
    check_dates,
    parse_on_failure,
)
from shoal.client.cli.terminal.options import (
    Data,
    Downstream,
    Json,
    Only,
    Parameters,
    Project,
    Tasks,
    Upstream,
    WorkflowName,
    find_workflow,
    parse_parameters,
    parse_priority,
    selection_mode,
)

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import BackfillIn, BackfillOut, PlanOut

_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
_LOOK_S = 0.3  # between two reads of a backfill
_MANY_DATES = 20  # that failed, listed at the end


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Backfills")(backfill)


def backfill(
    name: WorkflowName,
    first: First = None,
    last: Last = None,
    date: Dates = None,
    by: By = None,
    missing: Missing = False,
    failed: Failed = False,
    reprocess: Reprocess = None,
    parallel: Parallel = 1,
    descending: Descending = False,
    on_failure: OnFailure = None,
    task: Tasks = None,
    only: Only = False,
    upstream: Upstream = False,
    downstream: Downstream = False,
    dependents: Dependents = None,
    parameter: Parameters = None,
    priority: Priority = None,
    version: Version = None,
    dry_run: DryRun = False,
    wait: Wait = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Run a workflow once for each of many dates."""
    from shoal.client.rest.client import ShoalClient

    check_dates(first, last, date, missing, failed, reprocess)
    mode = selection_mode(task, only, upstream, downstream)
    level = parse_priority(priority)
    request: BackfillIn = {
        "workflow": name,
        "from": first,
        "to": last,
        "by": by,
        "only": "missing" if missing else "failed" if failed else None,
        "parallel": parallel,
        "on_failure": parse_on_failure(on_failure),
        "parameters": parse_parameters(parameter),
        "version": version,
    }
    if date:
        request["dates"] = date
    if reprocess:
        request["reprocess"] = reprocess
    if descending:
        request["order"] = "descending"
    if task:
        request["tasks"] = task
    if mode:
        request["mode"] = mode
    if dependents:
        request["downstream"] = dependents
    if level:
        request["priority"] = level
    with ShoalClient.connect(data) as client:
        request["project"], request["workflow"] = find_workflow(client, name, project)
        if dry_run:
            plan = client.create_backfill(request, dry_run=True)["plan"]
            assert plan is not None, "it is a dry run"
            _show_plan(plan, as_json)
        else:
            _start(client, request, wait, as_json)


def _show_plan(plan: "PlanOut", as_json: bool) -> None:
    from shoal.client.cli.backfills.view import plan_table
    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import out, print_json, say

    if as_json:
        print_json(plan)
        return
    out().print(plan_table(plan["runs"], out().width))
    left_out = plan["total"] - plan["to_run"]
    say(f"{plural(plan['to_run'], 'run')}, {left_out} left out; nothing was started", "dim")


def _start(client: "ShoalClient", request: "BackfillIn", wait: bool, as_json: bool) -> None:
    from shoal.client.cli.runs.progress import require_done
    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import out, print_json, say

    command = client.create_backfill(request)["command"]
    assert command is not None, "it is not a dry run"
    outcome = client.outcome(command)
    require_done(outcome, as_json)
    backfill_id = outcome["backfill_id"]
    assert backfill_id is not None, "the command is done"
    found = client.get_backfill(backfill_id)
    text = (
        f"started backfill {backfill_id} of {request['project']}/{request['workflow']}: "
        f"{plural(found['total'], 'date')}"
    )
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
        failed = list(
            islice(
                client.pages(client.list_backfill_runs, backfill_id, state=["FAILED"]), _MANY_DATES
            )
        )
        if failed:
            out().print(runs_table(failed, out().width))
    if ended["state"] != "SUCCEEDED":
        raise typer.Exit(1)


def _watched(client: "ShoalClient", backfill_id: int) -> "BackfillOut":
    from shoal.client.cli.backfills.view import progress_of
    from shoal.client.cli.runs.progress import patiently

    with progress_of(backfill_id) as shown:
        while True:
            found = patiently(partial(client.get_backfill, backfill_id))
            shown.show(found)
            if found["state"] in _ENDED:
                return found
            time.sleep(_LOOK_S)
