"""Options and arguments that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shoal.client.rest.client import ShoalClient

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

    from shoal.client.errors import ApiProblem, NotFound

    project, name = _split(name, project)
    try:
        client.get_workflow(project or DEFAULT_PROJECT, name)
    except ApiProblem as problem:
        if problem.status != 404:
            raise
    else:
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
