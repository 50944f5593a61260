"""Options and arguments that several commands share."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import typer

if TYPE_CHECKING:
    from shoal.client.errors import NotFound
    from shoal.client.rest.client import ShoalClient
    from shoal.client.rest.operations.generated.types import SelectionMode

Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Data folder of the cluster; default: $SHOAL_DATA, the nearest .shoal, the "
        "latest `shoal login`, or ~/.shoal. $SHOAL_URL names an API instead.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")]
Project = Annotated[str | None, typer.Option(metavar="PROJECT", help="Project of the workflow.")]
WorkflowName = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of a workflow, also as PROJECT/NAME.")
]
InstanceId = Annotated[int, typer.Argument(metavar="ID", min=1, help="Id of a workflow instance.")]

Wait = Annotated[
    bool, typer.Option("--wait", "-w", help="Follow the run to its end; exit 0 if it succeeds.")
]
Labels = Annotated[
    list[str] | None,
    typer.Option("--label", "-l", metavar="KEY=VALUE", help="A label of the run; repeatable."),
]
Parameters = Annotated[
    list[str] | None,
    typer.Option("-p", "--parameter", metavar="KEY=VALUE", help="A parameter; repeatable."),
]
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
States = Annotated[
    list[str] | None,
    typer.Option(metavar="STATE", help="Only in this state, such as RUNNING; repeatable."),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")]
PriorityName: TypeAlias = Literal["HIGHEST", "HIGH", "MEDIUM", "LOW", "LOWEST"]

MOST_OF_A_PAGE = 500  # what the API gives at a time
DEFAULT_PROJECT = "default"


def workflow_filter(name: str | None, project: str | None) -> tuple[str | None, str | None]:
    """Return project and workflow that a list is limited to; None: it is not.

    ``name`` may be PROJECT/NAME. Raises BadParameter.
    """
    return (project, None) if name is None else _split(name, project)


def home_of(name: str, project: str | None) -> tuple[str, str]:
    """Return project and name of what may be given as PROJECT/NAME."""
    home, name = _split(name, project)
    return home or DEFAULT_PROJECT, name


def find_workflow(client: "ShoalClient", name: str, project: str | None) -> tuple[str, str]:
    """Return project and name of an existing workflow.

    Without a project it is ``default``, or else the only project that has a workflow of this
    name. Raises NotFound, naming what is similar.
    """
    from difflib import get_close_matches

    from shoal.client.errors import NotFound

    project, name = _split(name, project)
    if client.find(client.get_workflow, project or DEFAULT_PROJECT, name):
        return project or DEFAULT_PROJECT, name
    known = [
        (found["project"], found["name"])
        for found in client.pages(client.list_workflows, project=project)
    ]
    homes = [home for home, other in known if other == name]
    if len(homes) == 1:
        return homes[0], name
    if homes:
        choices = ", ".join(f"{home}/{name}" for home in homes)
        raise NotFound(f"several projects have a workflow {name!r}: say which, {choices}")
    by_name = {other: f"{home}/{other}" for home, other in known}
    close = [by_name[other] for other in get_close_matches(name, by_name, n=3)]
    hint = f"did you mean {' or '.join(close)}?" if close else "`shoal workflows` lists them"
    where = f" in the project {project}" if project else ""
    raise NotFound(f"there is no workflow {name!r}{where}; {hint}")


def projects_of(client: "ShoalClient", project: str | None) -> list[str]:
    """Return the project that was named, or else all of them."""
    return [project] if project else [one["name"] for one in client.pages(client.list_projects)]


def _split(name: str, project: str | None) -> tuple[str | None, str]:
    prefix, slash, rest = name.partition("/")
    if not slash:
        return project, name
    if project not in (None, prefix):
        raise typer.BadParameter(f"{name} is not in the project {project}")
    return prefix, rest


def parse_parameters(given: Sequence[str] | None) -> dict[str, str]:
    """Return KEY=VALUE texts as a mapping. Raises BadParameter."""
    found: dict[str, str] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="-p")
        if key in found:
            raise typer.BadParameter(f"{key} is given twice", param_hint="-p")
        found[key] = value
    return found


def parse_labels(given: Sequence[str] | None) -> dict[str, str]:
    """Return labels by key. Raises BadParameter."""
    found = {}
    for text in given or ():
        key, separator, value = text.partition("=")
        if not (key and separator):
            raise typer.BadParameter(
                f"{text!r} is not a label; write KEY=VALUE, such as team=flights",
                param_hint="--label",
            )
        found[key] = value
    return found


def parse_priority(text: str | None) -> "PriorityName | None":
    """Return the name of a priority given as name or number. Raises BadParameter."""
    if text is None:
        return None
    from shoal.core.definition.fields import Priority

    try:
        return cast("PriorityName", Priority.read(int(text) if text.isdecimal() else text).name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--priority") from None


def require_logical_time(moment: datetime, option: str) -> None:
    """Return if a run can be for an aware ``moment``. Raises BadParameter."""
    from shoal.core.timing.logical_time import LogicalTimeOutOfRange, logical_time

    try:
        logical_time(moment)
    except LogicalTimeOutOfRange as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


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


def read_states(given: Sequence[str] | None, known: type[Enum]) -> list[Any]:
    """Return the names of states as the API has them: literals. Raises BadParameter."""
    states = [text.upper() for text in given or ()]
    for state in states:
        if state not in known.__members__:
            names = ", ".join(known.__members__)
            raise typer.BadParameter(
                f"{state} is not a state; there are {names}", param_hint="--state"
            )
    return states


def page_of(limit: int) -> int:
    """Return how many to fetch at a time for ``limit`` in all."""
    return min(limit, MOST_OF_A_PAGE)


def option_text(file: Path, option: str, encoding: str) -> str:
    """Return the text of a file that an option names. Raises BadParameter."""
    try:
        return file.read_text(encoding=encoding)
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{option} {file}: {error}") from None


def in_utc(moment: datetime | None) -> datetime | None:
    """Return a time of an option, which is in UTC unless it says otherwise."""
    return None if moment is None else moment.replace(tzinfo=moment.tzinfo or UTC)
