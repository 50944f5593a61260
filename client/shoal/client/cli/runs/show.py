"""``shoal instances`` and ``shoal instance``: what runs and what ran."""

from datetime import UTC, datetime
from itertools import islice
from typing import Annotated, Any, cast

import typer

from shoal.client.cli.terminal.options import (
    Data,
    InstanceId,
    Json,
    Limit,
    Project,
    States,
    in_utc,
    page_of,
    read_states,
    workflow_filter,
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command(rich_help_panel="Runs")(instances)
    app.command(rich_help_panel="Runs")(instance)


def instances(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Only for this workflow, also PROJECT/NAME."),
    ] = None,
    state: States = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", "-l", metavar="KEY[=VALUE]", help="With this label; repeatable."),
    ] = None,
    text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="In the workflow's name or the reason.")
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(metavar="TIME", help="Created at this time (UTC) or later.")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(metavar="TIME", help="Created before this time (UTC).")
    ] = None,
    backfill: Annotated[
        int | None, typer.Option(metavar="ID", min=1, help="Only for this backfill.")
    ] = None,
    schedule: Annotated[
        int | None, typer.Option(metavar="ID", min=1, help="Only for this schedule.")
    ] = None,
    parent: Annotated[
        int | None, typer.Option(metavar="ID", min=1, help="Only sub-workflows of this instance.")
    ] = None,
    late: Annotated[
        bool, typer.Option("--late", help="Only those that go on beyond their deadline.")
    ] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="created_at, started_at, finished_at, duration, priority, or, of one workflow, "
            "logical_time; with - in front falling. Default: -created_at.",
        ),
    ] = None,
    past: Annotated[
        bool,
        typer.Option(
            "--past", help="Out of the exported history, by their end: also those long purged."
        ),
    ] = False,
    first: Annotated[
        datetime | None,
        typer.Option(
            "--from", metavar="DAY", formats=["%Y-%m-%d"], help="With --past: ended on it or later."
        ),
    ] = None,
    last: Annotated[
        datetime | None,
        typer.Option(
            "--to", metavar="DAY", formats=["%Y-%m-%d"], help="With --past: ended on it or earlier."
        ),
    ] = None,
    limit: Limit = 20,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List workflow instances, newest first. Options combine."""
    from shoal.client.cli.runs.past import list_past, some_past
    from shoal.client.cli.terminal.appearance import clock, counts_text, lasted, state_text
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient
    from shoal.core.runs.states import WorkflowState

    states = read_states(state, WorkflowState)
    project, name = workflow_filter(name, project)
    if past:
        if label or text or since or until or backfill or schedule or parent or late or sort:
            raise typer.BadParameter(
                "goes with NAME, --project, --state, --from, --to and --limit alone",
                param_hint="--past",
            )
        with ShoalClient.connect(data) as client:
            gone = some_past(client, limit, project, name, list(states), (first, last))
        print_json(gone) if as_json else list_past(gone)
        return
    if first or last:
        raise typer.BadParameter("is about the past: with --past", param_hint="--from, --to")
    with ShoalClient.connect(data) as client:
        listed = client.pages(
            client.list_instances,
            project=project,
            workflow=name,
            state=states,
            label=label or (),
            text=text,
            since=in_utc(since),
            until=in_utc(until),
            backfill_id=backfill,
            schedule_id=schedule,
            parent_id=parent,
            late=late or None,
            sort=cast(Any, sort),  # the API checks it
            limit=page_of(limit),
        )
        found = list(islice(listed, limit))
    if as_json:
        print_json(found)
        return
    if not found:
        say("no instances; start one with `shoal run NAME`")
        return
    from rich.text import Text

    now = datetime.now(UTC)
    shown = TextTable(["id>", "workflow", "state", "created", "lasted>", "tasks", "~"])
    for item in found:
        shown.add(
            str(item["id"]),
            Text.assemble(
                (f"{item['project']}/", "dim"), item["workflow"], (f" v{item['version']}", "dim")
            ),
            state_text(item["state"]),
            clock(item["created_at"], now),
            lasted(item["started_at"], item["finished_at"], now),
            counts_text(item["task_counts"]),
            Text(item["reason"] or "", "dim"),
        )
    out().print(shown.table(out().width, ("created", "tasks", "lasted")))


def instance(
    instance_id: InstanceId,
    every: Annotated[
        bool, typer.Option("--all", "-a", help="Earlier attempts of each task as well.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show one instance: its tasks as a tree with states and times.

    One that was purged comes out of the exported history, if there is one.
    """
    from shoal.client.cli.runs.past import or_past, show_past
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found, gone = or_past(
            client,
            instance_id,
            lambda: client.get_instance(instance_id, attempts="all" if every else None),
        )
    if as_json:
        print_json(found or gone)
        return
    if gone is not None:
        show_past(gone)
        return
    assert found is not None, "one of the two is there"
    from rich.text import Text

    from shoal.client.cli.runs.view import expected_facts, head_text, progress_text, tasks_table
    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out

    now = datetime.now(UTC)
    console = out()
    console.print(head_text(found, now))
    facts = [f"created {clock(found['created_at'], now)}"]
    if clock(found["logical_time"], now) != clock(found["created_at"], now):
        facts.append(f"for {clock(found['logical_time'], now)}")
    if found.get("deadline_at"):
        facts.append(f"deadline {clock(found['deadline_at'], now)}")
    facts += expected_facts(found, now)
    if parent := found.get("parent"):
        facts.append(
            f"works for instance {parent['instance_id']}, "
            f"task instance {parent['task_instance_id']}"
        )
    if found["rerun_of"]:
        facts.append(f"run {found['run_number']}, again of instance {found['rerun_of']}")
    facts += [f"{key}={value}" for key, value in found["parameters"].items()]
    facts += [f"label {key}={value}" for key, value in found.get("labels", {}).items()]
    console.print(Text("  ".join(facts), "dim"), soft_wrap=True)
    if found["reason"]:
        console.print(Text(found["reason"]))
    console.print()
    console.print(tasks_table(found, now, console.width))
    console.print()
    console.print(progress_text(found))
