"""``shoal session``: the browsers in which one is signed in."""

from typing import Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json

group = typer.Typer(
    name="session", no_args_is_help=True, help="The browsers in which you are signed in."
)


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Access")


@group.command("list")
def list_sessions(data: Data = None, as_json: Json = False) -> None:
    """List your sessions, the newest first."""
    from datetime import UTC, datetime

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_sessions))
    if as_json:
        print_json(found)
        return
    if not found:
        say("no sessions; `shoal token list` shows what programs use")
        return
    now = datetime.now(UTC)
    shown = TextTable(["id>", "address", "browser~", "began", "last used", "ends"])
    for one in found:
        times = (one["created_at"], one["used_at"], one["expires_at"])
        shown.add(
            str(one["id"]), one["address"], one["agent"], *(clock(time, now) for time in times)
        )
    out().print(shown.table(out().width, ("began", "last used")))


@group.command()
def end(
    session_id: Annotated[int, typer.Argument(metavar="ID", min=1, help="Number of the session.")],
    data: Data = None,
) -> None:
    """Sign a browser out, within a second."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        client.end_session(session_id)
    say(f"session {session_id} is ended")
