"""``shoal grant restrict``, ``open``, ``restrictions``: whose worker groups and environments are.

They belong to the cluster, so administrators say it.
"""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.client.cli.terminal.options import Data, Json
from shoal.core.access.grants import Restricted

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import RestrictionIn, RestrictionOut

What = Annotated[Restricted, typer.Argument(metavar="KIND", help="worker-group or environment.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Of a worker group or an environment.")]
_Projects = Annotated[
    list[str] | None,
    typer.Option(metavar="PROJECT", help="May use it, besides those that may. Repeatable."),
]


def register(group: typer.Typer) -> None:
    """Add the commands of this module to ``group``."""
    group.command()(restrict)
    group.command("open")(open_to_all)
    group.command("restrictions")(list_restrictions)


def restrict(
    what: What,
    name: Name,
    projects: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROJECT]…", help="All that may use it.", show_default=False),
    ] = None,
    add: _Projects = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(metavar="PROJECT", help="May use it no more. Repeatable."),
    ] = None,
    nobody: Annotated[bool, typer.Option("--nobody", help="No project may use it.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Keep a worker group or an environment for some projects. For administrators.

    What runs goes on; tasks of other projects fail from now on. A first --add keeps it for that
    project alone.
    """
    from shoal.client.cli.terminal.output import print_json, say
    from shoal.client.rest.client import ShoalClient

    if sum(map(bool, (projects, add or remove, nobody))) != 1:
        raise typer.BadParameter(
            "say which projects may use it, or --add and --remove some, or --nobody"
        )
    with ShoalClient.connect(data) as client:
        if add or remove:
            stored = _changed(client, what, name, add=add or (), remove=remove or ())
        else:
            stored = client.put_restriction(what.value, name, {"projects": projects or []})
    if as_json:
        print_json(stored)
    else:
        say(f"{_called(what, name)} is for {_for(stored['projects'])}")


def _changed(
    client: "ShoalClient",
    what: Restricted,
    name: str,
    *,
    add: Collection[str],
    remove: Collection[str],
) -> "RestrictionOut":
    """Add projects to those that may use it, and remove others; what is open is closed then.

    Raises ApiProblem (412) if another user has changed it meanwhile.
    """
    found = client.find(client.get_restriction, what.value, name)
    before = found["projects"] if found else ()
    etag, new = (client.etag, None) if found else (None, "*")
    body: RestrictionIn = {"projects": sorted({*before, *add} - {*remove})}
    return client.put_restriction(what.value, name, body, if_match=etag, if_none_match=new)


def open_to_all(what: What, name: Name, data: Data = None) -> None:
    """Let every project use a worker group or an environment again. For administrators."""
    from shoal.client.cli.terminal.output import say
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        client.delete_restriction(what.value, name)
    say(f"{_called(what, name)} is for every project")


def list_restrictions(data: Data = None, as_json: Json = False) -> None:
    """List what some projects alone may use. For administrators."""
    from shoal.client.cli.terminal.output import out, print_json, say
    from shoal.client.cli.terminal.tables import TextTable
    from shoal.client.rest.client import ShoalClient

    with ShoalClient.connect(data) as client:
        found: list[RestrictionOut] = list(client.pages(client.list_restrictions))
    if as_json:
        print_json(found)
        return
    if not found:
        say("every project may use every worker group and every environment")
        return
    shown = TextTable(["kind", "name", "for"])
    for one in found:
        shown.add(one["kind"], one["name"], _for(one["projects"]))
    out().print(shown.table(out().width))


def _called(what: Restricted, name: str) -> str:
    return f"{'worker group' if what is Restricted.WORKER_GROUP else 'environment'} {name}"


def _for(projects: Sequence[str]) -> str:
    return ", ".join(projects) or "no project"
