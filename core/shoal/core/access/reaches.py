"""Where a definition reaches other projects, and which grant that needs."""

from collections.abc import Iterator
from dataclasses import dataclass

from shoal.core.access.grants import Grant
from shoal.core.definition.kinds import LogicKind
from shoal.core.definition.model import TaskSpec, WorkflowSpec
from shoal.core.logic.dependent import Dependent


@dataclass(frozen=True)
class Reach:
    """A task reaches another project. ``path`` leads to what names it."""

    path: tuple[str | int, ...]
    project: str
    needs: Grant


def reaches(spec: WorkflowSpec) -> Iterator[Reach]:
    """Yield where a checked definition reaches other projects."""
    for index, task in enumerate(spec.tasks):
        for project, needs in _named(task):
            if project != spec.project:
                yield Reach(("tasks", index, "params", _FIELDS[needs]), project, needs)


_FIELDS = {Grant.RUN: "project", Grant.SEE: "when"}


def _named(task: TaskSpec) -> Iterator[tuple[str, Grant]]:
    match task.type:
        case LogicKind.SUB_WORKFLOW | LogicKind.MAP:
            if isinstance(project := task.params.get("project"), str):
                yield project, Grant.RUN
        case LogicKind.DEPENDENT:
            for item in Dependent.Params.model_validate(task.params).when.items():
                if item.project is not None:
                    yield item.project, Grant.SEE
