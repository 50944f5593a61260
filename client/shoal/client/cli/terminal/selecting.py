"""Options that choose tasks of a workflow: ``--task A --downstream``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shoal.client.rest.commands import ModeName

Tasks = Annotated[
    list[str] | None,
    typer.Option("--task", "-t", metavar="TASK", help="Only this task; repeatable."),
]
Only = Annotated[bool, typer.Option("--only", help="Nothing but the named tasks (the default).")]
Upstream = Annotated[
    bool, typer.Option("--upstream", help="The named tasks and all that they depend on.")
]
Downstream = Annotated[
    bool, typer.Option("--downstream", help="The named tasks and all that depend on them.")
]


def selection_mode(
    tasks: Sequence[str] | None, only: bool, upstream: bool, downstream: bool
) -> "ModeName | None":
    """Return what goes with the named tasks; None if there are none. Raises BadParameter."""
    given: list[ModeName] = []
    given += ["only"] if only else []
    given += ["upstream"] if upstream else []
    given += ["downstream"] if downstream else []
    if len(given) > 1:
        raise typer.BadParameter(f"--{given[0]} and --{given[1]} exclude each other")
    if not tasks:
        if given:
            raise typer.BadParameter(
                f"--{given[0]} needs a task to start from, such as --task NAME"
            )
        return None
    return given[0] if given else "only"
