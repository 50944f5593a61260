"""``shoal whoami``: who one is, where, and what that allows."""

from typing import TYPE_CHECKING

import typer

from shoal.client.cli.terminal.options import Data, Json

if TYPE_CHECKING:
    from shoal.client.discovery import Api
    from shoal.client.rest.operations.generated.types import MeOut


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command(rich_help_panel="Access")(whoami)


def whoami(data: Data = None, as_json: Json = False) -> None:
    """Show who you are for the cluster that commands speak to, and which roles you have."""
    from shoal.client.cli.terminal.output import print_json
    from shoal.client.discovery import find_api
    from shoal.client.rest.client import ShoalClient

    api = find_api(data)
    with ShoalClient.of(api) as client:
        me = client.get_me()
    if not as_json:
        _print(me, api)
        return
    folder = None if api.data is None else str(api.data)
    expires_at = None if api.login is None else api.login.expires_at
    where = {"url": api.url, "source": api.source, "data": folder, "expires_at": expires_at}
    print_json({**me, **where})


def _print(me: "MeOut", api: "Api") -> None:
    from rich.text import Text

    from shoal.client.cli.terminal.output import out
    from shoal.client.cli.terminal.tables import TextTable

    out().print(Text.assemble((me["name"], "bold"), f" at {api.url}"))
    for line in (_token(api), *_rights(me)):
        out().print(Text(line, "dim"))
    if me["roles"]:
        shown = TextTable(["project", "role"])
        for one in me["roles"]:
            shown.add(one["project"], one["role"])
        out().print(shown.table(out().width))


def _token(api: "Api") -> str:
    if api.login is not None:
        return f"by the token of `shoal login`, which expires on {api.login.expires_at[:10]}"
    return "by SHOAL_TOKEN" if api.data is None else f"by the token of the data folder {api.data}"


def _rights(me: "MeOut") -> list[str]:
    """Return what is to be said of rights, besides roles."""
    found = []
    if me["must_change_password"]:
        found.append("the password has to be changed before anything else is allowed")
    if me["is_admin"]:
        found.append("an administrator: may do everything")
    elif not me["roles"]:
        found.append("without a role in any project: an owner of a project can give one")
    if me["permissions"] is not None:
        found.append(f"the token is limited to: {', '.join(me['permissions'])}")
    if me["projects"] is not None:
        names = ", ".join(me["projects"]) or "none that is left"
        found.append(f"the token is limited to the projects: {names}")
    return found
