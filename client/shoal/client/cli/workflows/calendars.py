"""``shoal calendar``: days on which schedules do not fire."""

from datetime import date
from pathlib import Path
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
    from shoal.client.cli.terminal.tables import TextTable
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
    shown = TextTable(["calendar", "days>", "first", "last", "description~"])
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


def read_days(sources: list[str]) -> list[str]:
    """Return the days that days and files name, ascending. Raises NotADay.

    A file has one day in each line, as YYYY-MM-DD. The rest of the line, empty lines and lines that
    begin with ``#`` are comments.
    """
    days: set[date] = set()
    for source in sources:
        day = _day(source)
        days |= {day} if day is not None else _of_file(Path(source).expanduser())
    return [day.isoformat() for day in sorted(days)]


def _of_file(path: Path) -> set[date]:
    from shoal.client.errors import NotADay

    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise NotADay(
            f"{path} is not a day such as 2026-12-24, nor a readable file: {reason}"
        ) from error
    days = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        day = _day(words[0].rstrip(",;"))
        if day is None:
            raise NotADay(f"{path}:{number}: {words[0]!r} is not a day such as 2026-12-24")
        days.add(day)
    return days


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == len("2026-12-24") else None
    except ValueError:
        return None
