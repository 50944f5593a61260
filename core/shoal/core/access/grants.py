"""Grants between projects: what the tasks of one may do with another.

Who edits a definition decides what its tasks do, so a definition could reach whatever the cluster
reaches. It reaches another project only as far as an owner of that one lets it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from shoal.core.definition.kinds import LogicKind

if TYPE_CHECKING:
    from shoal.core.definition.model import TaskSpec, WorkflowSpec

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
class StoredGrant:
    """What a project lets ``taker`` do; "*" is every project."""

    taker: str
    what: Grant
    created_at: datetime


@dataclass(frozen=True)
class ResourceGrant:
    """Which files of a project the tasks of ``taker`` may use; "*" is every project.

    ``paths``: of files, of folders with a slash at the end, or "*" for all.
    """

    taker: str
    paths: tuple[str, ...]
    created_at: datetime
    updated_at: datetime


def no_such_file(giver: str, wanted: object, taker: str) -> str:
    """Return why a task cannot use a file of another project: there is none, or it is not shared.

    The words are the same for both.
    """
    path = str(wanted).partition(":")[2].partition("@")[0]
    return (
        f"there is no resource {wanted} that project {taker} may use; if there is one, an owner of "
        f"{giver} can share it: shoal grant files {taker} {path} --project {giver}"
    )


class Restricted(StrEnum):
    """What can be restricted to projects."""

    WORKER_GROUP = "worker-group"  # its workers run no task of another project
    ENVIRONMENT = "environment"  # for another project there is none of this name


def no_such_group(project: str, group: str) -> str:
    """Return why a task of a project is not for a worker group: the same at save and at run."""
    return (
        f"project {project} may not use the worker group {group!r}; choose another one, or let an "
        f"administrator allow it: `shoal grant restrict worker-group {group} --add {project}`"
    )


@dataclass(frozen=True)
class GrantNeed:
    """A task reaches another project. ``path`` leads to what names it."""

    path: tuple[str | int, ...]
    project: str
    needs: Grant


def reaches(spec: "WorkflowSpec") -> Iterator[GrantNeed]:
    """Yield where a checked definition reaches other projects."""
    for index, task in enumerate(spec.tasks):
        for project, needs in _named(task):
            if project != spec.project:
                yield GrantNeed(("tasks", index, "params", _FIELDS[needs]), project, needs)


_FIELDS = {Grant.RUN: "project", Grant.SEE: "when"}


def _named(task: "TaskSpec") -> Iterator[tuple[str, Grant]]:
    match task.type:
        case LogicKind.SUB_WORKFLOW | LogicKind.MAP:
            if isinstance(project := task.params.get("project"), str):
                yield project, Grant.RUN
        case LogicKind.DEPENDENT:
            # `shoal --help` lists grants, and must not load what checks definitions.
            from shoal.core.logic.dependent import Dependent

            for item in Dependent.Params.model_validate(task.params).when.items():
                if item.project is not None:
                    yield item.project, Grant.SEE
