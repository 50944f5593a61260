"""``shoal grant``: what the tasks of other projects may do with a project, for its owners."""

from typing import Annotated

import typer

from shoal.client.cli.access import restrictions
from shoal.client.cli.terminal.options import DEFAULT_PROJECT, Data, Json
from shoal.core.access.grants import EVERY_PROJECT, Grant

group = typer.Typer(
    name="grant",
    no_args_is_help=True,
    help="What the tasks of other projects may do with a project.",
)

Project = Annotated[
    str, typer.Option(metavar="PROJECT", help="The project that gives.", show_default=True)
]
Taker = Annotated[
    str, typer.Argument(metavar="TAKER", help="The project whose tasks may; '*': of every one.")
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module, and those about restrictions, to ``app``."""
    restrictions.register(group)
    app.add_typer(group, rich_help_panel="Access")


@group.command("list")
def list_grants(
    project: Project = DEFAULT_PROJECT, data: Data = None, as_json: Json = False
) -> None:
    """List what others may do."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found = list(client.pages(client.list_grants, project))
        files = list(client.pages(client.list_resource_grants, project))
    if as_json:
        print_json([*found, *files])
        return
    if not found and not files:
        say(f"project {project} lets no other one do anything")
        return
    shown = TextTable(["project", "may"])
    for one in found:
        shown.add(_called(one["project"]), one["what"])
    for shared in files:
        shown.add(_called(shared["project"]), f"use {' '.join(shared['paths'])}")
    out().print(shown.table(out().width))


@group.command("set")
def put(
    taker: Taker,
    what: Annotated[
        Grant,
        typer.Argument(metavar="WHAT", help="see: wait for runs. run: run workflows, too."),
    ],
    project: Project = DEFAULT_PROJECT,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Let the tasks of another project do something, instead of what they may now."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        stored = client.put_grant(project, taker, {"what": what.value})
    if as_json:
        print_json(stored)
        return
    does = "run its workflows" if what is Grant.RUN else "wait for its runs"
    say(f"project {project} lets the tasks of {_called(taker)} {does}")


@group.command()
def remove(taker: Taker, project: Project = DEFAULT_PROJECT, data: Data = None) -> None:
    """Take it back: nothing new is started, what runs goes on."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        client.delete_grant(project, taker)
    say(f"project {project} no longer lets the tasks of {_called(taker)} do anything")


@group.command()
def files(
    taker: Taker,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH]…", help="Files, FOLDER/, or '*'; all that it may use."),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="It may no longer use any.")] = False,
    project: Project = DEFAULT_PROJECT,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Let the tasks of another project use files of this one, as PROJECT:PATH."""
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    if bool(paths) is none:
        raise typer.BadParameter("say which files it may use, or --none")
    with ShoalClient.connect(data) as client:
        if none:
            client.delete_resource_grant(project, taker)
            say(f"project {project} no longer shares files with {_called(taker)}")
            return
        stored = client.put_resource_grant(project, taker, {"paths": paths or []})
    if as_json:
        print_json(stored)
    else:
        say(f"project {project} shares {' '.join(stored['paths'])} with {_called(taker)}")


def _called(taker: str) -> str:
    return "every project" if taker == EVERY_PROJECT else f"project {taker}"
