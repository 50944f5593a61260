"""Grants between projects: what the tasks of one may do with another.

Who edits a definition decides what its tasks do, so a definition could reach whatever the cluster
reaches. It reaches another project only as far as an owner of that one lets it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from shoal.core.definition.kinds import LogicKind
from shoal.core.definition.model import TaskSpec, WorkflowSpec
from shoal.core.logic.dependent import Dependent

#: Stands for every project.
EVERY_PROJECT = "*"


class Grant(StrEnum):
    """What a project lets the tasks of another one do. The later one includes the earlier one."""

    SEE = "see"  # wait for its runs (DEPENDENT)
    RUN = "run"  # run its workflows (SUB_WORKFLOW, MAP), and see how they end


#: By what is needed: the grants that give it.
GIVEN_BY: Mapping[Grant, frozenset[Grant]] = {
    Grant.SEE: frozenset({Grant.SEE, Grant.RUN}),
    Grant.RUN: frozenset({Grant.RUN}),
}


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
