"""``shoal secret``: what tasks may use and the API never shows."""

import sys
from typing import Annotated

import typer

from shoal.client.cli.terminal.options import DEFAULT_PROJECT, Data, Json, Project, projects_of

group = typer.Typer(
    name="secret",
    no_args_is_help=True,
    help="Secrets of a project. Definitions refer to them as ${secret.NAME}, scripts read the "
    "variable SHOAL_SECRET_NAME; logs show *** instead.",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Letters, digits and '_'.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to ``app``."""
    app.add_typer(group, rich_help_panel="Workflows")


@group.command("set")
def put(
    name: Name,
    reference: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="STORE:PATH#FIELD",
            help="It is kept in another store, and read there when a task needs it.",
        ),
    ] = None,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Set a secret. Its value is typed at a prompt, or read from standard input: never an argument.

    One line end at the end of the input is not part of it. With --from there is no value here: the
    secret stays in a store that the administrator has set up.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    value = None if reference is not None else read_value(f"Value of {home}/{name}")
    with ShoalClient.connect(data) as client:
        if reference is not None:
            stored = client.with_project(client.put_secret, home, name, {"reference": reference})
        else:
            assert value is not None
            stored = client.with_project(client.put_secret, home, name, {"value": value})
    if as_json:
        print_json(stored)
    elif reference is None:
        say(f"secret {home}/{name} is set")
    else:
        say(
            f"secret {home}/{name} is read from {stored['reference']}; `shoal secret test` tries it"
        )


def read_value(what: str) -> str:
    """Ask for a secret value at the terminal, or read it from standard input."""
    if sys.stdin.isatty():
        return str(typer.prompt(what, hide_input=True, confirmation_prompt=True))
    try:
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError:
        raise typer.BadParameter("the value on standard input is not UTF-8") from None
    return text.removesuffix("\n").removesuffix("\r")


@group.command("list")
def list_secrets(project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """List secrets: their names and when they were set, never their values."""
    from datetime import UTC, datetime

    from shoal.client.cli.terminal.appearance import clock
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        homes = projects_of(client, project)
        found = [
            {"project": home, **one}
            for home in homes
            for one in client.pages(client.list_secrets, home)
        ]
    if as_json:
        print_json(found)
        return
    if not found:
        say("no secrets; set one with `shoal secret set NAME`")
        return
    now = datetime.now(UTC)
    shown = TextTable(["project", "secret", "set", "from~"])
    for one in found:
        set_at, where = clock(str(one["updated_at"]), now), str(one["reference"] or "")
        shown.add(str(one["project"]), str(one["name"]), set_at, where)
    out().print(shown.table(out().width))


@group.command("test")
def try_out(name: Name, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Try whether a task could have a secret now; ends with 1 if not. Its value is not shown."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        found = client.test_secret(home, name)
    if as_json:
        print_json(found)
    else:
        say(f"secret {home}/{name}: {found['text']} ({found['took_s']:.1f} s)")
    if not found["ok"]:
        raise typer.Exit(1)


@group.command()
def delete(name: Name, project: Project = None, data: Data = None) -> None:
    """Delete a secret; tasks that refer to it fail from now on."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    home = project or DEFAULT_PROJECT
    with ShoalClient.connect(data) as client:
        client.delete_secret(home, name)
    say(f"secret {home}/{name} is deleted")
