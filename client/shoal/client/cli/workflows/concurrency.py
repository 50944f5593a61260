"""``shoal concurrency``: how many tasks of a group may be at work at once."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json, Project, home_of, projects_of

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import ConcurrencyGroupOut, SlotUserOut

group = typer.Typer(
    name="concurrency",
    no_args_is_help=True,
    help="Concurrency groups: how many tasks may be at work at once.",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the group, also as PROJECT/NAME.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Workflows")


@group.command("set")
def put(
    name: Name,
    slots: Annotated[
        int, typer.Argument(metavar="SLOTS", min=0, help="How many; with 0 nothing starts.")
    ],
    description: Annotated[
        str | None, typer.Option(help="What it is for; default: as it was.")
    ] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a group, or change its slots. Fewer slots end nothing that runs."""
    from shoal.client.cli.terminal.appearance import plural
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    with ShoalClient.connect(data) as client:
        if description is None:
            before = client.find(client.get_concurrency_group, home, name)
            description = before["description"] if before else None
        stored = client.with_project(
            client.put_concurrency_group,
            home,
            name,
            {"slots": slots, "description": description or ""},
        )
    if as_json:
        print_json(stored)
    else:
        say(f"concurrency group {home}/{name} has {plural(stored['slots'], 'slot')}")


@group.command("list")
def list_groups(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List concurrency groups."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        homes = projects_of(client, project)
        found: list[ConcurrencyGroupOut] = [
            one for home in homes for one in client.pages(client.list_concurrency_groups, home)
        ]
    if as_json:
        print_json(found)
        return
    if not found:
        say("no concurrency groups; make one with `shoal concurrency set NAME SLOTS`")
        return
    shown = TextTable(["group", "slots>", "taken>", "waiting>", "description~"])
    for one in found:
        name = Text.assemble((f"{one['project']}/", "dim"), one["name"])
        numbers = [str(one["slots"]), str(one["taken"]), str(one["waiting"])]
        shown.add(name, *numbers, Text(one["description"], "dim"))
    out().print(shown.table(out().width))


@group.command()
def show(name: Name, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Show which tasks have the slots of a group, and which wait, in their order."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_concurrency_group(*home_of(name, project))
    if as_json:
        print_json(found)
        return
    head = Text.assemble((f"{found['project']}/", "dim"), (found["name"], "bold"))
    head.append(f"  {found['taken']} of {found['slots']} slots taken, {found['waiting']} waiting")
    out().print(head)
    if found["description"]:
        out().print(Text(found["description"], "dim"))
    for title, users, total in (
        ("has a slot", found["holders"], found["taken"]),
        ("waits", found["waiters"], found["waiting"]),
    ):
        if users:
            _print_users(title, users)
        if total > len(users):
            out().print(Text(f"… and {total - len(users)} more", "dim"))


def _print_users(title: str, users: "list[SlotUserOut]") -> None:
    from shoal.client.cli.terminal.appearance import clock, state_text
    from shoal.client.cli.terminal.output import out
    from shoal.client.cli.terminal.tables import TextTable

    now = datetime.now(UTC)
    shown = TextTable([title, "instance>", "task instance>", "attempt>", "state", "since"])
    for one in users:
        shown.add(
            f"{one['workflow']}/{one['task']}",
            str(one["workflow_instance_id"]),
            str(one["task_instance_id"]),
            str(one["attempt"]),
            state_text(one["state"]),
            clock(one["granted_at"], now),
        )
    out().print()
    out().print(shown.table(out().width, ("attempt", "since")))


@group.command()
def delete(name: Name, project: Project = None, data: Data = None) -> None:
    """Delete a group; refused while a workflow names it or a task needs it."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    home, name = home_of(name, project)
    with ShoalClient.connect(data) as client:
        client.delete_concurrency_group(home, name)
    say(f"concurrency group {home}/{name} is deleted")
