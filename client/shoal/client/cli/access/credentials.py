"""Passwords and tokens on their way in and out: never an argument, shown once."""

import sys
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from shoal.client.discovery import Api


def read_password(what: str, *, is_new: bool = False) -> str:
    """Ask for a password at the terminal, a new one twice; or read a line of standard input.

    Raises BadParameter if there is no such line.
    """
    if sys.stdin.isatty():
        # The standard output may be where a token goes.
        return str(typer.prompt(what, hide_input=True, confirmation_prompt=is_new, err=True))
    try:
        line = sys.stdin.buffer.readline().decode()
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{what}: standard input is not UTF-8") from None
    password = line.removesuffix("\n").removesuffix("\r")
    if not password:
        raise typer.BadParameter(
            f"{what}: type it at a terminal, or give it as the next line of standard input"
        )
    return password


def name_of_user(api: "Api") -> str:
    """Return the name of the user who asks. Raises NotAUser, NoPassword for who has none."""
    from shoal.client.errors import NoPassword, NotAUser
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.of(api) as client:
        me = client.get_me()
    if me["kind"] != "USER":
        raise NotAUser(me["name"], api.url)
    if me["issuer"] is not None and not me["has_password"]:
        raise NoPassword(me["name"], me["issuer"])
    return me["name"]


def print_secret(secret: str, said: str, document: Any, *, as_json: bool) -> None:
    """Print a secret, which cannot be read again: alone on standard output.

    ``said`` goes to standard error; ``document`` holds the secret too.
    """
    from shoal.client.cli.terminal.output import print_json, say

    if as_json:
        print_json(document)
        return
    say(said)
    print(secret, flush=True)
