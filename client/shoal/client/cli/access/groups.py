"""``shoal group``: users and service accounts that get roles together, for administrators."""

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import GroupOut

group = typer.Typer(
    name="group",
    no_args_is_help=True,
    help="Groups of users and service accounts, which get roles together. For administrators.",
)

Name = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.")]
Member = Annotated[
    str, typer.Argument(metavar="NAME", help="A user, or a service account as PROJECT/NAME.")
]
Description = Annotated[str, typer.Option(metavar="TEXT", help="What the group is for.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Access")


@group.command("list")
def list_groups(data: Data = None, as_json: Json = False) -> None:
    """List groups with their members."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_groups))
    if as_json:
        print_json(found)
        return
    if not found:
        say("no groups; make one with `shoal group add GROUP`")
        return
    shown = TextTable(["group", "members~", "description~"])
    for one in found:
        shown.add(one["name"], ", ".join(one["members"]), Text(one["description"], "dim"))
    out().print(shown.table(out().width))


@group.command()
def add(
    name: Name, description: Description = "", data: Data = None, as_json: Json = False
) -> None:
    """Make a group without members."""
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        made = client.create_group({"name": name, "description": description})
    _tell(made, f"group {made['name']} is made", as_json)


@group.command()
def describe(
    name: Name,
    description: Annotated[str, typer.Argument(metavar="TEXT", help="What the group is for.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Say what a group is for."""
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.change_group(name, {"description": description})
    _tell(found, f"group {found['name']} is described", as_json)


@group.command()
def delete(name: Name, data: Data = None) -> None:
    """Delete a group; its members lose the roles that they had by it."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        client.delete_group(name)
    say(f"group {name} is deleted")


@group.command("add-member")
def add_member(name: Name, member: Member, data: Data = None, as_json: Json = False) -> None:
    """Add a member to a group."""
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.put_group_member(name, member)
    _tell(found, f"{member} is in the group {found['name']}", as_json)


@group.command("remove-member")
def remove_member(name: Name, member: Member, data: Data = None) -> None:
    """Remove a member from a group."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        client.delete_group_member(name, member)
    say(f"{member} is no longer in the group {name}")


def _tell(found: "GroupOut", said: str, as_json: bool) -> None:
    from shoal.client.cli.terminal.output import print_json, say

    if as_json:
        print_json(found)
    else:
        say(said)
