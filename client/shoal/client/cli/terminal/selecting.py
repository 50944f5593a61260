"""Which tasks are meant: ``--task A --downstream``, and names that no task has."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shoal.client.errors import NotFound
    from shoal.client.rest.operations.generated.types import SelectionMode

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
) -> "SelectionMode | None":
    """Return what goes with the named tasks; None if there are none. Raises BadParameter."""
    given: list[SelectionMode] = []
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


def no_task(instance_id: int, name: str, known: Collection[str]) -> "NotFound":
    """Return the error that an instance has no such task, with the names that it may have been."""
    from difflib import get_close_matches

    from shoal.client.errors import NotFound

    close = get_close_matches(name, known, n=3) or list(known)[:10]
    more = " …" if len(known) > len(close) else ""
    return NotFound(f"instance {instance_id} has no task {name!r}; it has {', '.join(close)}{more}")
