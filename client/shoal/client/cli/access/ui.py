"""``shoal ui``: opens the web UI, signed in where that needs no password."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data

if TYPE_CHECKING:
    pass

_PAGE = """<!doctype html>
<meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Shoal</title>
<meta http-equiv="refresh" content="0; url={link}">
<p><a href="{link}">Go on to Shoal</a>
"""


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.command("ui", rich_help_panel="Cluster")(open_ui)


def open_ui(
    data: Data = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address alone, open nothing.")
    ] = False,
) -> None:
    """Open the web UI in a browser. For your own `shoal up` the link signs you in, once."""
    from shoal.client.discovery import TokenSource, find_api
    from shoal.client.rest.client import ShoalClient

    api = find_api(data)
    if api.source is not TokenSource.DATA_FOLDER:
        print(f"{api.url}/", flush=True)
        if not no_browser:
            typer.launch(f"{api.url}/")
        return
    with ShoalClient.of(api) as client:
        link = f"{api.url}/sign-in#{client.create_sign_in_code()['code']}"
    print(link, flush=True)
    typer.echo("the link works once, within a minute, on this machine", err=True)
    if not no_browser and api.data is not None:
        # The link must not be seen in the list of processes: the browser is given a file with it.
        typer.launch(str(_page(api.data, link)))


def _page(data: Path, link: str) -> Path:
    """Return a page that leads to a link; only its owner can read it."""
    import os

    file = data / "sign-in.html"
    file.unlink(missing_ok=True)  # a new one: whatever stood there, and its mode, are gone
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(_PAGE.format(link=link))
    return file
