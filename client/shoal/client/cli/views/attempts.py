"""``shoal attempts``: how often tasks were tried, and how each attempt ended."""

from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from shoal.client.cli.terminal.options import (
    Data,
    Json,
    Limit,
    Project,
    States,
    in_utc,
    page_of,
    read_states,
    workflow_filter,
)

if TYPE_CHECKING:
    from rich.table import Table

    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import TaskOut

# Columns that a narrow terminal does without, the first one first.
_SPARE = ("memory", "cpu", "exit", "queued", "worker", "started")


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Runs")(attempts)


def attempts(
    instance_id: Annotated[
        int | None,
        typer.Argument(metavar="ID", min=1, help="Only for this workflow instance."),
    ] = None,
    task: Annotated[
        str | None, typer.Argument(metavar="TASK", help="Only for this task of it.")
    ] = None,
    workflow: Annotated[
        str | None,
        typer.Option(
            "--workflow", "-w", metavar="NAME", help="Of its instances, also PROJECT/NAME."
        ),
    ] = None,
    state: States = None,
    worker: Annotated[
        str | None, typer.Option(metavar="ID", help="Only what this worker has had.")
    ] = None,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only of this worker group.")
    ] = None,
    type_: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only of this task type.")
    ] = None,
    fingerprint: Annotated[
        str | None,
        typer.Option(
            metavar="FINGERPRINT", help="Only failures that are the same as one with this."
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="In the task's name or the reason.")
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(metavar="TIME", help="Started at this time (UTC) or later.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(metavar="TIME", help="Started before this time (UTC).")
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="created_at, started_at, finished_at, duration; with - in front falling. "
            " Default: -created_at.",
        ),
    ] = None,
    limit: Limit = 50,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List attempts of tasks, newest first: of one task of a run, of a run, or of many runs.

    Looks of waiting tasks that found nothing are listed with --state RESCHEDULED only.
    """
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient
    from shoal.core.runs.states import TaskState

    states = read_states(state, TaskState)
    project, name = workflow_filter(workflow, project)
    with ShoalClient.connect(data) as client:
        listed = client.pages(
            client.list_task_instances,
            instance_id=instance_id,
            task=task,
            project=project,
            workflow=name,
            state=states,
            worker=worker,
            worker_group=group,
            type_=type_,
            fingerprint=fingerprint,
            text=text,
            started_since=in_utc(since),
            started_until=in_utc(until),
            sort=cast(Any, sort),  # the API checks it
            limit=page_of(limit),
        )
        found = list(islice(listed, limit))
        if not found and instance_id is not None:
            _check(client, instance_id, task)
    if as_json:
        print_json(found)
    elif found:
        of_one = instance_id is not None
        out().print(attempts_table(found, datetime.now(UTC), out().width, of_one=of_one))
    else:
        say("no attempts")


def _check(client: "ShoalClient", instance_id: int, task: str | None) -> None:
    """Raise NotFound if the instance or its task is not there: a list does not say so."""
    from shoal.client.cli.runs.view import newest_attempts
    from shoal.client.cli.terminal.options import no_task

    tasks = newest_attempts(client.get_instance(instance_id)["tasks"])
    if task is not None and task not in tasks:
        raise no_task(instance_id, task, tasks)


def attempts_table(found: "list[TaskOut]", now: datetime, width: int, *, of_one: bool) -> "Table":
    """Return a line for each attempt, ``width`` characters wide.

    ``of_one``: all are of one run, which need not be said.
    """
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import (
        clock,
        cpu_text,
        failure_text,
        lasted,
        memory_text,
        state_text,
    )
    from shoal.client.cli.terminal.tables import TextTable

    columns = ["id>", "instance>", "task", "attempt>", "state", "queued", "started", "lasted>"]
    shown = TextTable([*columns, "cpu>", "memory>", "worker", "exit>", "~"])
    for one in found:
        workflow = "" if of_one else f"{one['project']}/{one['workflow']} "
        shown.add(
            str(one["id"]),
            "" if of_one else str(one["workflow_instance_id"]),
            Text.assemble((workflow, "dim"), one["task"]),
            str(one["attempt"]),
            state_text(one["state"]),
            Text(clock(one["queued_at"], now), "dim"),
            Text(clock(one["started_at"], now), "dim"),
            lasted(one["started_at"], one["finished_at"], now),
            cpu_text(one.get("cpu_s")),
            memory_text(one.get("max_rss_kb")),
            Text(one["worker"] or "", "dim"),
            "" if one["exit_code"] is None else str(one["exit_code"]),
            Text(failure_text(one["reason"], one.get("error_line")), "dim"),
        )
    return shown.table(width, _SPARE)
