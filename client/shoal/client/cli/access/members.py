"""``shoal member``: who has which role in a project, for its owners."""

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import DEFAULT_PROJECT, Data, Json
from shoal.core.access.permissions import Role

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import HolderKind

group = typer.Typer(
    name="member",
    no_args_is_help=True,
    help="Members of a project: who has which role there. Its owners give roles.",
)

Project = Annotated[str, typer.Option(metavar="PROJECT", help="The project.", show_default=True)]
User = Annotated[str | None, typer.Option(metavar="NAME", help="A user.")]
Group = Annotated[
    str | None, typer.Option("--group", metavar="GROUP", help="A group, for all its members.")
]
ServiceAccount = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A service account; of another project as PROJECT/NAME."),
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Access")


@group.command("list")
def list_members(
    project: Project = DEFAULT_PROJECT, data: Data = None, as_json: Json = False
) -> None:
    """List who has a role. Administrators may do everything, and are not among them."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_members, project))
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"project {project} has no members; `shoal member set ROLE --user NAME` makes one")
        return
    shown = TextTable(["member", "kind", "role"])
    for one in found:
        shown.add(one["name"], one["kind"].replace("-", " "), one["role"])
    out().print(shown.table(out().width))


@group.command("set")
def put(
    role: Annotated[Role, typer.Argument(metavar="ROLE", help="reader, runner, writer or owner.")],
    project: Project = DEFAULT_PROJECT,
    user: User = None,
    group_name: Group = None,
    service_account: ServiceAccount = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Give a role, instead of the one that there may be."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    kind, name = _holder(project, user, group_name, service_account)
    with ShoalClient.connect(data) as client:
        stored = client.put_member(project, kind, name, {"role": role.value})
    if as_json:
        print_json(stored)
    else:
        say(f"{stored['name']} is {stored['role']} of the project {project}")


@group.command()
def remove(
    project: Project = DEFAULT_PROJECT,
    user: User = None,
    group_name: Group = None,
    service_account: ServiceAccount = None,
    data: Data = None,
) -> None:
    """Take a role away. Runs that were started go on."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    kind, name = _holder(project, user, group_name, service_account)
    with ShoalClient.connect(data) as client:
        client.delete_member(project, kind, name)
    say(f"{name} no longer has a role of its own in the project {project}")


def _holder(
    project: str, user: str | None, group_name: str | None, service_account: str | None
) -> "tuple[HolderKind, str]":
    """Return kind and name of the one that is meant. Raises BadParameter."""
    if service_account is not None and "/" not in service_account:
        service_account = f"{project}/{service_account}"
    named: dict[HolderKind, str | None] = {
        "user": user,
        "group": group_name,
        "service-account": service_account,
    }
    found = [(kind, name) for kind, name in named.items() if name is not None]
    if len(found) != 1:
        raise typer.BadParameter("name one: --user, --group or --service-account")
    return found[0]
