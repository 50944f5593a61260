"""``shoal service-account``: programs that sign in with tokens, for owners of projects."""

from typing import Annotated

import typer

from shoal.client.cli.terminal.options import DEFAULT_PROJECT, Data, Json, Project, home_of
from shoal.core.access.permissions import Role

group = typer.Typer(
    name="service-account",
    no_args_is_help=True,
    help="Service accounts of a project: programs that sign in with tokens. "
    "`shoal token add --service-account` makes those.",
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the account, also as PROJECT/NAME.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Access")


@group.command("list")
def list_accounts(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List the service accounts of a project, disabled ones too."""
    from datetime import UTC, datetime

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_service_accounts, home))
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"project {home} has none; `shoal service-account add NAME --role ROLE` makes one")
        return
    now = datetime.now(UTC)
    shown = TextTable(["service account", "state", "made"])
    for one in found:
        state = "" if one["disabled_at"] is None else "disabled"
        shown.add(one["name"], state, clock(one["created_at"], now))
    out().print(shown.table(out().width))


@group.command()
def add(
    name: Name,
    role: Annotated[Role, typer.Option(help="What it is in its project.")],
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a service account with a role in its project; it can get roles in others, too."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home, short = home_of(name, project)
    with ShoalClient.connect(data) as client:
        made = client.create_service_account(home, {"name": short, "role": role.value})
    if as_json:
        print_json(made)
        return
    say(
        f"service account {made['name']} is made, {role} of its project; a token: "
        f"`shoal token add TEXT --service-account {made['name']}`"
    )


@group.command()
def disable(name: Name, project: Project = None, data: Data = None) -> None:
    """Disable a service account for ever: its tokens are revoked, its name is not used again."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    home, short = home_of(name, project)
    with ShoalClient.connect(data) as client:
        client.disable_service_account(home, short)
    say(f"service account {home}/{short} is disabled")
