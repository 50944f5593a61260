"""``shoal token``: tokens for programs, one's own or those of a service account."""

from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.access.credentials import name_of_user, print_secret, read_password
from shoal.client.cli.access.sign_in import MOST_DAYS
from shoal.client.cli.terminal.options import Data, Json, home_of
from shoal.core.access.permissions import Permission

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import NewTokenOut, TokenIn, TokenOut

group = typer.Typer(
    name="token",
    no_args_is_help=True,
    help="Tokens for programs: they may do what their owner may, or less.",
)

Owner = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of this service account, as PROJECT/NAME."),
]
User = Annotated[str | None, typer.Option(metavar="NAME", help="Of this user; for administrators.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Access")


@group.command("list")
def list_tokens(
    service_account: Owner = None, user: User = None, data: Data = None, as_json: Json = False
) -> None:
    """List tokens, without their texts, the newest first."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    _one_owner(service_account, user)
    with ShoalClient.connect(data) as client:
        if service_account is not None:
            home, name = home_of(service_account, None)
            listed = client.pages(client.list_service_account_tokens, home, name)
        elif user is not None:
            listed = client.pages(client.list_user_tokens, user)
        else:
            listed = client.pages(client.list_tokens)
        found = list(listed)
    if as_json:
        print_json(found)
    elif not found:
        say("no tokens; make one with `shoal token add TEXT`")
    else:
        _print(found)


@group.command()
def add(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What it is for, such as 'nightly import'.")
    ],
    days: Annotated[int, typer.Option(min=1, max=MOST_DAYS, help="Until it expires.")] = 90,
    no_expiry: Annotated[bool, typer.Option("--no-expiry", help="It never expires.")] = False,
    permission: Annotated[
        list[Permission] | None,
        typer.Option(metavar="PERMISSION", help="Limit it to this; repeatable."),
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option(metavar="PROJECT", help="Limit it to this project; repeatable."),
    ] = None,
    service_account: Owner = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it, this once.

    One of your own needs your password: it is asked for, or a line of standard input.
    """
    from shoal.client.rest.client import ShoalClient

    wanted: TokenIn = {
        "name": text,
        "permissions": [one.value for one in permission] if permission else None,
        "projects": project or None,
        "days": None if no_expiry else days,
    }
    if service_account is None:
        made = _own(wanted, data)
    else:
        home, name = home_of(service_account, None)
        with ShoalClient.connect(data) as client:
            made = client.create_service_account_token(home, name, wanted)
    ends = "never expires" if made["expires_at"] is None else f"expires {made['expires_at'][:10]}"
    said = f"token {made['id']} of {made['owner']}, which {ends}; it is shown only once:"
    print_secret(made["token"], said, made, as_json=as_json)


def _own(wanted: "TokenIn", data: Data) -> "NewTokenOut":
    """Sign in for a moment: a token makes no tokens."""
    from shoal.client.discovery import find_api
    from shoal.client.rest.access.sign_in import sign_in

    api = find_api(data)
    name = name_of_user(api)
    password = read_password(f"Password of {name} at {api.url}")
    with sign_in(api.url, name, password, hint=api.hint, ca=api.ca) as session:
        return session.create_token(wanted)


@group.command()
def revoke(
    token_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="Number of the token.")],
    service_account: Owner = None,
    user: User = None,
    data: Data = None,
) -> None:
    """Make a token worthless, within a second."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    _one_owner(service_account, user)
    with ShoalClient.connect(data) as client:
        if service_account is not None:
            client.revoke_service_account_token(*home_of(service_account, None), token_id)
        elif user is not None:
            client.revoke_user_token(user, token_id)
        else:
            client.revoke_token(token_id)
    say(f"token {token_id} is revoked")


def _one_owner(service_account: str | None, user: str | None) -> None:
    if service_account is not None and user is not None:
        raise typer.BadParameter("--service-account and --user exclude each other")


def _print(tokens: "list[TokenOut]") -> None:
    from datetime import UTC, datetime

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out
    from shoal.client.cli.terminal.tables import TextTable

    now = datetime.now(UTC)
    shown = TextTable(["id>", "owner", "token~", "limited to~", "made", "last used", "expires"])
    for one in tokens:
        limits = [*(one["permissions"] or ()), *(one["projects"] or ())]
        shown.add(
            str(one["id"]),
            one["owner"],
            one["name"],
            ", ".join(limits),
            clock(one["created_at"], now),
            clock(one["used_at"], now),
            clock(one["expires_at"], now) or "never",
        )
    out().print(shown.table(out().width, ("made", "last used")))
