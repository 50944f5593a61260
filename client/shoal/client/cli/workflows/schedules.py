"""``shoal schedule``: which schedules there are, and when they fire."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from shoal.client.cli.terminal.options import DEFAULT_PROJECT, Data, Json, Project, find_workflow

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import PreviewOut, ScheduleOut

group = typer.Typer(name="schedule", no_args_is_help=True, help="Schedules and when they fire.")

OnGap = Literal["shift", "skip"]
OnOverlap = Literal["first", "last", "both"]
Count = Annotated[int, typer.Option("-n", min=1, max=500, help="How many lines.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Workflows")


@group.command("list")
def list_schedules(
    workflow: Annotated[
        str | None, typer.Argument(metavar="[WORKFLOW]", help="Only for this workflow.")
    ] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List schedules and when they fire next."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        if workflow is None:
            found = list(client.pages(client.list_schedules, project=project))
        else:
            found = list(
                client.pages(
                    client.list_workflow_schedules, *find_workflow(client, workflow, project)
                )
            )
    if as_json:
        print_json(found)
    elif not found:
        say("no schedules; they are part of a definition, under `schedules:`")
    else:
        out().print(_table(found))


def _table(found: "Sequence[ScheduleOut]") -> object:
    from rich.text import Text

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out
    from shoal.client.cli.terminal.tables import TextTable

    now = datetime.now(UTC)
    shown = TextTable(["id>", "workflow", "schedule", "zone", "next", "~"])
    for item in found:
        name = Text.assemble((f"{item['project']}/", "dim"), item["workflow"])
        following = clock(item["next_fire_at"], now, item["timezone"])
        shown.add(
            str(item["id"]),
            name,
            Text(item["cron"]),
            item["timezone"],
            _next(item, following),
            Text(", ".join(_remarks(item, now)), "dim"),
        )
    return shown.table(out().width, ("id",))


def _next(item: "ScheduleOut", following: str) -> str:
    if not item["enabled"]:
        return "off"
    return "paused" if item["paused_at"] else following or "never"


def _remarks(item: "ScheduleOut", now: datetime) -> list[str]:
    """What is not as it is in most schedules."""
    from shoal.client.cli.terminal.appearance import clock

    texts = []
    if item["priority"] is not None:
        texts.append(f"priority {item['priority']}")
    if item["calendar"] is not None:
        texts.append(f"calendar {item['calendar']}")
    if item["exclude"]:
        texts.append(f"without {', '.join(item['exclude'][:3])}{' …' * (len(item['exclude']) > 3)}")
    if item["start"] is not None:
        texts.append(f"from {clock(item['start'], now, item['timezone'])}")
    if item["end"] is not None:
        texts.append(f"until {clock(item['end'], now, item['timezone'])}")
    if item["missed"] != "last":
        texts.append(f"missed: {item['missed']}")
    if item["on_gap"] is None:
        texts.append("cannot be read by this version")
    return texts


ScheduleId = Annotated[
    int, typer.Argument(metavar="ID", min=1, help="As `shoal schedule list` shows it.")
]


ScheduleIds = Annotated[
    list[int] | None,
    typer.Argument(metavar="[ID]...", min=1, help="As `shoal schedule list` shows them."),
]
OfWorkflow = Annotated[
    str | None,
    typer.Option("--workflow", metavar="NAME", help="All of this workflow, also PROJECT/NAME."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say which it would be.")]


@group.command()
def pause(
    ids: ScheduleIds = None,
    workflow: OfWorkflow = None,
    project: Project = None,
    dry_run: DryRun = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Have schedules not fire until they are resumed, whatever is published meanwhile."""
    _change("pause", ids, workflow, project, dry_run, data, as_json)


@group.command()
def resume(
    ids: ScheduleIds = None,
    workflow: OfWorkflow = None,
    project: Project = None,
    dry_run: DryRun = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Have schedules fire again, from now on; nothing is made up for."""
    _change("resume", ids, workflow, project, dry_run, data, as_json)


def _change(
    how: Literal["pause", "resume"],
    ids: list[int] | None,
    workflow: str | None,
    project: str | None,
    dry_run: bool,
    data: Path | None,
    as_json: bool,
) -> None:
    """Ask for all at once; exits with 1 if any could not be changed."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    if bool(ids) == (workflow is not None or project is not None):
        raise typer.BadParameter("name schedules by their ids, or with --workflow or --project")
    with ShoalClient.connect(data) as client:
        if ids and len(ids) == 1 and not dry_run:
            ask = client.pause_schedule if how == "pause" else client.resume_schedule
            _tell(how, ask(ids[0]), as_json)
            return
        home, name = project, None
        if workflow is not None:
            home, name = find_workflow(client, workflow, project)
        found = client.create_bulk_schedules(
            {"type": how, "ids": ids or None},
            project=None if ids else home,
            workflow=name,
            dry_run=dry_run or None,
        )
    if as_json:
        print_json(found)
    for item in found["items"] if not as_json else ():
        schedule = item["schedule"]
        if schedule is None:
            problem = item["problem"]
            say(f"schedule {item['id']}: {problem['detail'] if problem else 'unknown'}")
            continue
        _tell("look" if dry_run else how, schedule, False)
    if not as_json and not found["items"]:
        say("there is no such schedule")
    if found["is_more"]:
        say("there are more: ask again for each workflow")
    if any(item["problem"] for item in found["items"]):
        raise typer.Exit(1)


def _tell(how: str, schedule: "ScheduleOut", as_json: bool) -> None:
    from shoal.client.cli.terminal.output import print_json, say

    of = f"schedule {schedule['id']} of {schedule['project']}/{schedule['workflow']}"
    if as_json:
        print_json(schedule)
    elif how == "look":
        say(f"{of} {'is' if schedule['paused_at'] else 'is not'} paused")
    elif how == "pause":
        say(f"{of} is paused")
    else:
        say(f"{of} fires next: {schedule['next_fire_at'] or 'never'}")


@group.command()
def preview(
    what: Annotated[
        str,
        typer.Argument(
            metavar="CRON|WORKFLOW",
            help="An expression such as '0 6 * * 1-5' (no cluster is needed), or a workflow, all "
            "of whose schedules are shown.",
        ),
    ],
    timezone: Annotated[
        str, typer.Option("--tz", metavar="ZONE", help="Time zone of the expression.")
    ] = "UTC",
    on_gap: Annotated[
        OnGap | None, typer.Option(help="What a time does that the clock skips.")
    ] = None,
    on_overlap: Annotated[
        OnOverlap | None, typer.Option(help="Which counts of a time that comes twice.")
    ] = None,
    calendar: Annotated[
        str | None, typer.Option(metavar="NAME", help="Leave out the days of a calendar.")
    ] = None,
    n: Count = 10,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show the next fire times; what clock changes and calendars do is said beside them."""
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.rest.client import ShoalClient

    if " " not in what.strip():
        with ShoalClient.connect(data) as client:
            _preview_workflow(client, what, project, n, as_json)
        return
    if calendar is None:
        shown = _local_preview(what, timezone, on_gap, on_overlap, n)
    else:
        with ShoalClient.connect(data) as client:
            shown = client.preview_expression(
                {
                    "cron": what,
                    "timezone": timezone,
                    "on_gap": on_gap,
                    "on_overlap": on_overlap,
                    "project": project or DEFAULT_PROJECT,
                    "calendar": calendar,
                    "n": n,
                }
            )
    if as_json:
        print_json(shown)
    else:
        _show(shown)


def _local_preview(
    expression: str, timezone: str, on_gap: OnGap | None, on_overlap: OnOverlap | None, n: int
) -> "PreviewOut":
    """Reckon here what the API would answer."""
    from shoal.core.schedule.fire_times import Timetable
    from shoal.core.schedule.preview import preview as lines_of
    from shoal.core.timing.cron.expression import InvalidCron, parse

    try:
        cron = parse(expression, timezone, on_gap=on_gap, on_overlap=on_overlap)
    except InvalidCron as error:
        raise typer.BadParameter(str(error)) from None
    return {
        "cron": expression,
        "timezone": timezone,
        "on_gap": cron.on_gap,
        "on_overlap": cron.on_overlap,
        "fire_times": [
            {
                "local": line.moment.isoformat(),
                "utc": line.moment.astimezone(UTC).isoformat().replace("+00:00", "Z"),
                "fires": line.fires,
                "marks": [mark.value for mark in line.marks],
            }
            for line in lines_of(Timetable(cron), datetime.now(UTC), n)
        ],
    }


def _preview_workflow(
    client: "ShoalClient", name: str, project: str | None, n: int, as_json: bool
) -> None:
    from shoal.client.cli.terminal.output import out, print_json, say

    home, name = find_workflow(client, name, project)
    schedules = list(client.pages(client.list_workflow_schedules, home, name))
    found = [(item, client.preview_schedule(item["id"], n=n)) for item in schedules]
    if as_json:
        print_json(
            [{"id": item["id"], "enabled": item["enabled"], **shown} for item, shown in found]
        )
        return
    if not found:
        say(f"workflow {home}/{name} has no schedules")
    for number, (item, shown) in enumerate(found):
        if number:
            out().print()
        _show(shown, "" if item["enabled"] else "switched off: it would fire at")


def _show(shown: "PreviewOut", remark: str = "") -> None:
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, say
    from shoal.client.cli.terminal.tables import TextTable

    how = f"on_gap: {shown['on_gap']}, on_overlap: {shown['on_overlap']}"
    head = Text.assemble((shown["cron"], "bold"), f"  {shown['timezone']}  ", (how, "dim"))
    out().print(head)
    if remark:
        out().print(Text(remark, "yellow"))
    if not shown["fire_times"]:
        say("it never fires again")
        return
    lines = TextTable(["local time", "UTC", ""])
    for line in shown["fire_times"]:
        local = datetime.fromisoformat(line["local"])
        utc = datetime.fromisoformat(line["utc"])
        style = "" if line["fires"] else "dim strike"
        lines.add(
            Text(f"{local:%a %Y-%m-%d %H:%M:%S %z}", style),
            Text(f"{utc:%Y-%m-%d %H:%M:%S}", style),
            Text(", ".join(line["marks"]), "yellow"),
        )
    out().print(lines.table(out().width))
