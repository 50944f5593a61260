"""``shoal calendar``: days on which schedules do not fire."""

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json, Project, home_of, projects_of

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import CalendarOut

group = typer.Typer(
    name="calendar", no_args_is_help=True, help="Calendars: days on which schedules do not fire."
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the calendar, also as PROJECT/NAME.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Workflows")


@group.command("set")
def put(
    name: Name,
    days: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE|DATE...",
            help="Days such as 2026-12-24, and files with a day in each line. They replace those "
            "that the calendar has.",
        ),
    ],
    description: Annotated[str, typer.Option(help="What it is for.")] = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a calendar, or replace the days of one."""
    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.cli.workflows.calendar_files import read_days
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    found = read_days(days)
    with ShoalClient.connect(data) as client:
        stored = client.with_project(
            client.put_calendar, home, name, {"days": found, "description": description}
        )
    if as_json:
        print_json(stored)
    else:
        say(f"calendar {home}/{name} has {plural(len(stored['days']), 'day')}")


@group.command("list")
def list_calendars(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List calendars."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import Grid
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        homes = projects_of(client, project)
        found: list[CalendarOut] = [
            one for home in homes for one in client.pages(client.list_calendars, home)
        ]
    if as_json:
        print_json(found)
        return
    if not found:
        say("no calendars; make one with `shoal calendar set NAME DATE...`")
        return
    shown = Grid(["calendar", "days>", "first", "last", "description~"])
    for one in found:
        name = Text.assemble((f"{one['project']}/", "dim"), one["name"])
        bounds = [one["days"][0], one["days"][-1]] if one["days"] else ["", ""]
        shown.add(name, str(len(one["days"])), *bounds, Text(one["description"], "dim"))
    out().print(shown.table(out().width))


@group.command()
def show(name: Name, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Print the days of a calendar, one in each line, as `set` reads them."""
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_calendar(*home_of(name, project))
    if as_json:
        print_json(found)
        return
    for day in found["days"]:
        print(day)


@group.command()
def delete(name: Name, project: Project = None, data: Data = None) -> None:
    """Delete a calendar; refused while a schedule uses it."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    with ShoalClient.connect(data) as client:
        client.delete_calendar(home, name)
    say(f"calendar {home}/{name} is deleted")
