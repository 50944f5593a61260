"""Other projects that a definition names: whoever publishes it needs permissions there too.

Else a workflow of one's own would run, or watch, what one may neither run nor see.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.api.access.callers import Caller
from shoal.core.access.permissions import Permission
from shoal.core.access.things import Thing
from shoal.core.definition.kinds import LogicKind
from shoal.core.definition.model import WorkflowSpec

_NEEDED: Mapping[str, Permission] = {
    LogicKind.SUB_WORKFLOW: Permission.RUN_OPERATE,
    LogicKind.MAP: Permission.RUN_OPERATE,
    LogicKind.DEPENDENT: Permission.PROJECT_READ,
}


async def require_references(caller: Caller, spec: WorkflowSpec) -> None:
    """Return if the caller may have this definition run and watch what it names.

    Raises NotFound for a project that is hidden or missing, which are not told apart; Forbidden.
    """
    for project, permission in dict.fromkeys(_references(spec)):
        await caller.require(permission, Thing.PROJECT, project)


def _references(spec: WorkflowSpec) -> Iterator[tuple[str, Permission]]:
    for task in spec.tasks:
        if (needed := _NEEDED.get(task.type)) is not None:
            for project in _projects(task.params):
                if project != spec.project:
                    yield project, needed


def _projects(params: Any) -> Iterator[str]:
    """Yield the projects beside a workflow's name, however deep inside of conditions."""
    if isinstance(params, list | tuple):
        for one in params:
            yield from _projects(one)
    elif isinstance(params, Mapping):
        if isinstance(params.get("workflow"), str) and isinstance(params.get("project"), str):
            yield params["project"]
        else:
            yield from _projects(list(params.values()))
