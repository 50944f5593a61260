"""``shoal login``, ``logout`` and ``passwd``: a token for this machine, and the password."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.access.credentials import name_of_user, read_password
from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from shoal.client.discovery import Api
    from shoal.client.logins import SavedLogin
    from shoal.client.rest.operations.exchange import ApiAddress
    from shoal.client.rest.operations.generated.operations import Operations


Url = Annotated[
    str | None,
    typer.Argument(
        metavar="URL",
        help="Address of the API; default: $SHOAL_URL, the latest login, or the local cluster.",
    ),
]
MOST_DAYS = 3660
_TOKEN_DAYS = 90  # until the token of a login expires
_LONGEST_NAME = 100  # characters of a token's name


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    for command in (login, logout, passwd):
        app.command(rich_help_panel="Access")(command)


def login(
    url: Url = None,
    name: Annotated[
        str | None, typer.Option(help="Who you are there; default: who signed in last.")
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=MOST_DAYS, help="Until the token of this machine expires.")
    ] = 90,
    oidc: Annotated[
        bool, typer.Option("--oidc", help="Sign in by a browser, at an OpenID provider.")
    ] = False,
    provider: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The provider, if there are several; with --oidc."),
    ] = None,
    ldap: Annotated[
        bool, typer.Option("--ldap", help="Sign in with the password of the directory.")
    ] = False,
    ca: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            envvar="SHOAL_CA",
            exists=True,
            dir_okay=False,
            resolve_path=True,
            help="PEM file of a private authority that the API's certificate is from.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Sign in as a user. Commands speak to that API from now on, until you sign out.

    The password is asked for, or read from the first line of standard input. One that has to be
    changed is: the new one is asked for, or is the second line. With --oidc a browser is opened.
    """
    from shoal.client.discovery import api_of, unreachable_hint
    from shoal.client.logins import keep_login, logins_file, read_logins
    from shoal.client.rest.access.sign_in import require_encryption
    from shoal.client.rest.operations.exchange import ApiAddress

    if (provider is not None and not oidc) or (oidc and (ldap or name is not None)):
        raise typer.BadParameter(
            "--provider belongs to --oidc, which goes without --ldap and --name: the provider says "
            "who you are"
        )
    file = logins_file()
    logins = read_logins(file)
    where = _address(url)
    require_encryption(where)
    former = logins.at(where)
    if ca is None and former is not None and former.ca is not None:
        ca = Path(former.ca)
    place = ApiAddress(where, unreachable_hint(where), ca=ca)
    if oidc:
        signing = by_browser(place, provider)
    else:
        if name is None:
            name = former.name if former is not None else _name()
        signing = _by_password(place, name, directory=ldap)
    with signing as session:
        made = _login(session, where, days, ca)
        try:
            keep_login(file, made)
        except BaseException:
            session.revoke_token(made.token_id)  # it was stored nowhere
            raise
    if former is not None:
        _revoke(api_of(former))
    _tell(made, as_json=as_json)


@contextmanager
def _by_password(place: "ApiAddress", name: str, *, directory: bool) -> "Iterator[Operations]":
    from shoal.client.rest.access.sign_in import sign_in

    of = " in the directory" if directory else ""
    password = read_password(f"Password of {name}{of} at {place.url}")
    with sign_in(
        place.url, name, password, hint=place.hint, ca=place.ca, directory=directory
    ) as session:
        if not directory and session.get_me()["must_change_password"]:
            _change_now(session, password)
        yield session


def logout(
    url: Url = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="Do not revoke the token: the API does not answer.")
    ] = False,
) -> None:
    """Sign out: the token of this machine is revoked and forgotten."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.discovery import api_of
    from shoal.client.errors import NotFound
    from shoal.client.logins import forget_login, logins_file, read_logins

    file = logins_file()
    logins = read_logins(file)
    where = _address(url)
    found = logins.at(where)
    if found is None:
        others = ", ".join(logins.by_url) or "nowhere"
        raise NotFound(f"you are not signed in at {where}; you are: {others}")
    if not forget:
        _revoke(api_of(found), must=True)
    forget_login(file, where)
    state = "forgotten, not revoked" if forget else "revoked"
    say(f"signed out of {where}; the token of this machine is {state}")


def passwd(
    keep_tokens: Annotated[
        bool, typer.Option("--keep-tokens", help="Else all your tokens are revoked.")
    ] = False,
    data: Data = None,
) -> None:
    """Change your password. All your sessions end; this machine stays signed in.

    The present password and the new one are asked for, or are two lines of standard input.
    """
    from shoal.client.cli.terminal.output import say
    from shoal.client.discovery import find_api
    from shoal.client.logins import keep_login, logins_file
    from shoal.client.rest.access.sign_in import sign_in

    api = find_api(data)
    name = name_of_user(api)
    current = read_password(f"Present password of {name} at {api.url}")
    with sign_in(api.url, name, current, hint=api.hint, ca=api.ca) as session:
        new = read_password("New password", is_new=True)
        session.change_password({"current": current, "new": new, "keep_tokens": keep_tokens})
        if not keep_tokens and api.login is not None:
            keep_login(logins_file(), _login(session, api.url, _TOKEN_DAYS, api.ca))
    if keep_tokens:
        tokens = "your tokens are still good"
    elif api.login is None:
        tokens = "your tokens are revoked, SHOAL_TOKEN too"
    else:
        tokens = "your other tokens are revoked"
    say(f"the password of {name} is changed; {tokens}")


def _address(url: str | None) -> str:
    """Return where to sign in or out."""
    import os

    from shoal.client.discovery import default_folder, local_api
    from shoal.client.errors import NoCluster
    from shoal.client.logins import logins_file, normal, read_logins

    if url is None:
        url = os.environ.get("SHOAL_URL") or read_logins(logins_file()).present
    if url is None:
        try:
            url = local_api(default_folder()).url
        except NoCluster:
            raise typer.BadParameter(
                "say where: the address of an API, such as https://shoal.example"
            ) from None
    return normal(url)


def _name() -> str:
    import getpass
    import sys

    if not sys.stdin.isatty():
        raise typer.BadParameter("say who you are there: --name NAME")
    return str(typer.prompt("Name", default=getpass.getuser(), err=True))


def _change_now(session: "Operations", password: str) -> None:
    from shoal.client.cli.terminal.output import say

    say("this password was for the first sign-in alone: choose one of your own")
    new = read_password("New password", is_new=True)
    session.change_password({"current": password, "new": new})


def _login(session: "Operations", url: str, days: int, ca: Path | None) -> "SavedLogin":
    """Make a token for this machine."""
    import socket

    from shoal.client.logins import SavedLogin

    name = f"shoal on {socket.gethostname()}"[:_LONGEST_NAME]
    token = session.create_token({"name": name, "days": days})
    expires_at = token["expires_at"]
    assert expires_at is not None, "asked for with days"
    kept = None if ca is None else str(ca)
    return SavedLogin(url, token["owner"], token["token"], token["id"], expires_at, kept)


def _revoke(api: "Api", *, must: bool = False) -> None:
    """Revoke the token of a login. One that is no longer accepted needs no more.

    Raises ApiUnreachable, and other errors, only if it ``must`` be done.
    """
    from shoal.client.cli.terminal.output import say
    from shoal.client.errors import ApiProblem, ApiUnreachable
    from shoal.client.rest.client import ShoalClient

    assert api.login is not None, "the token belongs to a login"
    try:
        with ShoalClient.of(api) as client:
            client.revoke_token(api.login.token_id)
    except (ApiProblem, ApiUnreachable) as error:
        if isinstance(error, ApiProblem) and error.status in (401, 404):
            return
        if must:
            raise
        say(f"the former token {api.login.token_id} is not revoked: {error}")


def _tell(made: "SavedLogin", *, as_json: bool) -> None:
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.discovery import find_api

    if as_json:
        print_json({"url": made.url, "name": made.name, "expires_at": made.expires_at})
        return
    say(f"signed in to {made.url} as {made.name}; the token expires on {made.expires_at[:10]}")
    present = find_api()
    if present.login != made:
        first = f"the data folder {present.data}" if present.data else "SHOAL_TOKEN"
        say(f"here {first} comes first; commands with SHOAL_URL={made.url} use this login")


_MOST_S = 600.0


@contextmanager
def by_browser(place: "ApiAddress", provider: str | None) -> "Iterator[Operations]":
    """Sign in at a provider of the API. Raises NoWay, NobodyCame, and what ``sign_in`` raises.

    A browser that cannot be opened here can be one that reaches a port of this machine.
    """
    import webbrowser

    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.access.loopback import Loopback
    from shoal.client.rest.access.sign_in import sign_in_by_code

    name = _provider(place, provider)
    with Loopback() as loopback:
        address = loopback.address(place.url, name)
        say(f"sign in with a browser of this machine; it shows the number {loopback.number}:")
        say(address)
        webbrowser.open(address)
        code = loopback.wait(_MOST_S)
    with sign_in_by_code(place, code, loopback.verifier) as session:
        yield session


def _provider(place: "ApiAddress", wanted: str | None) -> str:
    """Return the name of the provider; the only one need not be said."""
    from shoal.client.errors import NoWay
    from shoal.client.rest.access.sign_in import ways

    names = [one["name"] for one in ways(place) if one["kind"] == "oidc"]
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None or wanted not in names:
        raise NoWay(place.url, wanted, names)
    return wanted
