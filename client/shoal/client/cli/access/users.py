"""``shoal user``: people who may sign in, for administrators."""

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.access.credentials import print_secret, read_password
from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import AccountOut, UserChange

group = typer.Typer(
    name="user", no_args_is_help=True, help="Users: people who sign in. For administrators."
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Such as ada or ada@example.org.")]
FullName = Annotated[str | None, typer.Option(metavar="TEXT", help="What people call the user.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Access")


@group.command("list")
def list_users(data: Data = None, as_json: Json = False) -> None:
    """List users, disabled ones too."""
    from datetime import UTC, datetime

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_users))
    if as_json:
        print_json(found)
        return
    if not found:
        say("no users; make one with `shoal user add NAME`")
        return
    now = datetime.now(UTC)
    shown = TextTable(["user", "name~", "may", "state", "made"])
    for one in found:
        may = "everything" if one["is_admin"] else ""
        shown.add(one["name"], one["full_name"], may, _state(one), clock(one["created_at"], now))
    out().print(shown.table(out().width))


@group.command()
def show(name: Name, data: Data = None, as_json: Json = False) -> None:
    """Show a user."""
    from rich.text import Text

    from shoal.client.cli.terminal.output import out, print_json
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_user(name)
    if as_json:
        print_json(found)
        return
    out().print(Text.assemble((found["name"], "bold"), f"  {found['full_name']}"))
    if found["is_admin"]:
        out().print(Text("an administrator: may do everything"))
    out().print(Text(_state(found) or "active", "dim"))
    if found["subject"] is not None:
        out().print(Text(f"as {found['subject']}", "dim"))


@group.command()
def add(
    name: Name,
    full_name: FullName = None,
    admin: Annotated[bool, typer.Option("--admin", help="May do everything.")] = False,
    password: Annotated[
        bool,
        typer.Option(
            "--password",
            "--password-stdin",
            help="Ask for the password, or read it from standard input: never an argument.",
        ),
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a user, with a password for the first sign-in; it has to be changed then.

    A random one is made, and printed this once.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    given = read_password(f"Password of {name}", is_new=True) if password else None
    with ShoalClient.connect(data) as client:
        made = client.create_user(
            {"name": name, "full_name": full_name or "", "is_admin": admin, "password": given}
        )
    if made["password"] is not None:
        said = f"user {made['name']} is made; the password for the first sign-in:"
        print_secret(made["password"], said, made, as_json=as_json)
    elif as_json:
        print_json(made)
    else:
        say(f"user {made['name']} is made; the password has to be changed at the first sign-in")


@group.command()
def change(
    name: Name,
    full_name: FullName = None,
    admin: Annotated[
        bool | None,
        typer.Option(
            "--admin/--no-admin", help="Make the user an administrator, or take that away."
        ),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Change what is given of a user; all else stays."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    if full_name is None and admin is None:
        raise typer.BadParameter("say what changes: --full-name, --admin or --no-admin")
    with ShoalClient.connect(data) as client:
        changes: UserChange = {}
        if full_name is not None:
            changes["full_name"] = full_name
        if admin is not None:
            changes["is_admin"] = admin
        found = client.change_user(name, changes)
    if as_json:
        print_json(found)
    else:
        say(f"user {found['name']} is changed")


@group.command()
def disable(name: Name, data: Data = None, as_json: Json = False) -> None:
    """Disable a user: sessions and tokens end. Runs and schedules go on."""
    _able(name, data, as_json, disabled=True)


@group.command()
def enable(name: Name, data: Data = None, as_json: Json = False) -> None:
    """Let a disabled user sign in again; the former tokens stay revoked."""
    _able(name, data, as_json, disabled=False)


def _able(name: str, data: Data, as_json: bool, *, disabled: bool) -> None:
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.change_user(name, {"disabled": disabled})
    if as_json:
        print_json(found)
    else:
        say(f"user {found['name']} is {'disabled' if disabled else 'enabled'}")


@group.command("reset-password")
def reset_password(name: Name, data: Data = None, as_json: Json = False) -> None:
    """Give a user another password, printed this once; sessions and tokens end.

    It has to be changed at the next sign-in.
    """
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        made = client.reset_user_password(name)
    password = made["password"]
    assert password is not None, "the API has made it"
    said = f"user {made['name']} has another password, for the next sign-in:"
    print_secret(password, said, made, as_json=as_json)


@group.command()
def link(
    name: Name,
    issuer: Annotated[str, typer.Argument(help="Such as https://id.example, or ldap:directory.")],
    subject: Annotated[str, typer.Argument(help="What the issuer calls the user for ever.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Let a user sign in at a provider or a directory of the API's settings.

    A person who signs in there without an account is shown what to write here.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.put_identity(name, {"issuer": issuer, "subject": subject})
    if as_json:
        print_json(found)
    else:
        say(f"user {found['name']} signs in at {issuer}")


@group.command()
def unlink(name: Name, data: Data = None) -> None:
    """Remove a user's link to a provider; sessions and tokens end."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = client.get_user(name)
        client.delete_identity(name)
    rest = "" if found["has_password"] else f": `shoal user reset-password {name}` gives a password"
    say(f"user {found['name']} no longer signs in at {found['issuer']}{rest}")


def _state(user: "AccountOut") -> str:
    if user["disabled_at"] is not None:
        return "disabled"
    if user["must_change_password"]:
        return "has to change the password"
    if user["issuer"] is not None:
        also = "also " if user["has_password"] else ""
        return f"signs in {also}at {user['issuer']}"
    return "" if user["has_password"] else "without a password"
