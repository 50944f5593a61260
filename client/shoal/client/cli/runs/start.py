"""``shoal run``: start a workflow."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import (
    Data,
    Downstream,
    Json,
    Labels,
    Only,
    Parameters,
    Project,
    Tasks,
    Upstream,
    Wait,
    WorkflowName,
    find_workflow,
    parse_labels,
    parse_parameters,
    parse_priority,
    require_logical_time,
    selection_mode,
)

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import StartPreviewIn


def register(app: typer.Typer) -> None:
    """Add the command of this module to ``app``."""
    app.command(rich_help_panel="Runs")(run)


def run(
    name: WorkflowName,
    parameter: Parameters = None,
    wait: Wait = False,
    version: Annotated[int | None, typer.Option(min=1, help="Default: the newest.")] = None,
    logical_time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="The time the run is for, such as 2026-11-21T06:00; default: now. Without an "
            "offset it is in the workflow's time zone.",
        ),
    ] = None,
    priority: Annotated[
        str | None, typer.Option(metavar="LEVEL", help="HIGHEST, HIGH, MEDIUM, LOW or LOWEST.")
    ] = None,
    label: Labels = None,
    task: Tasks = None,
    only: Only = False,
    upstream: Upstream = False,
    downstream: Downstream = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would run and what each task gets.")
    ] = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Start a workflow, or some of its tasks."""
    from shoal.client.cli.runs.preview import show_preview
    from shoal.client.cli.runs.progress import follow_up
    from shoal.client.discovery import find_api
    from shoal.client.rest.client import ShoalClient

    parameters = parse_parameters(parameter)
    level = parse_priority(priority)
    mode = selection_mode(task, only, upstream, downstream)
    if wait and dry_run:
        raise typer.BadParameter("there is nothing to wait for in a dry run", param_hint="--wait")
    api = find_api(data)
    with ShoalClient.of(api) as client:
        home, name = find_workflow(client, name, project)
        moment = _logical_time(client, home, name, logical_time)
        labels = parse_labels(label)
        if dry_run:
            preview: StartPreviewIn = {
                "project": home,
                "workflow": name,
                "version": version,
                "parameters": parameters,
                "logical_time": moment.isoformat() if moment else None,
                "priority": level,
                "tasks": task,
                "mode": mode,
                "labels": {**labels},
            }
            show_preview(client.preview_start(preview), as_json)
            return
        command = client.start(
            home,
            name,
            version=version,
            parameters=parameters,
            logical_time=moment,
            priority=level,
            tasks=task or (),
            mode=mode,
            labels=labels,
        )
        follow_up(api, client, client.outcome(command), wait, as_json)


def _logical_time(
    client: "ShoalClient", project: str, name: str, text: str | None
) -> datetime | None:
    if text is None:
        return None
    from zoneinfo import ZoneInfo

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a time; write 2026-11-21, 2026-11-21T06:00 or 2026-11-21T06:00+01:00",
            param_hint="--logical-time",
        ) from None
    if moment.tzinfo is None:
        zone = client.get_workflow(project, name)["definition"].get("timezone", "UTC")
        moment = moment.replace(tzinfo=ZoneInfo(zone))
    require_logical_time(moment, "--logical-time")
    return moment
