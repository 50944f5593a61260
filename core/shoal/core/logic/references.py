"""Which other workflows a definition names: those that it runs, and those that it waits for.

Works on canonical forms, as they are stored: one that this version cannot read otherwise still
says what it names.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.core.definition.kinds import WITH_CHILDREN, LogicKind
from shoal.core.definition.model import WorkflowSpec


@dataclass(frozen=True)
class WorkflowReference:
    """A task names a workflow. ``kind`` says what for."""

    task: str
    kind: LogicKind
    project: str
    workflow: str


def references(project: str, definition: Mapping[str, Any]) -> list[WorkflowReference]:
    """Return what the tasks of a definition of ``project`` name, each once, in their order."""
    found: dict[WorkflowReference, None] = {}
    for task in definition["tasks"]:
        for kind, named in _named(task):
            home = named.get("project") or project
            one = WorkflowReference(str(task["name"]), kind, str(home), named["workflow"])
            found[one] = None
    return list(found)


Name = tuple[str, str]  # project and name of a workflow


def runs(found: Iterable[WorkflowReference]) -> list[Name]:
    """Return the workflows that tasks run as sub-workflows, each once."""
    names = [(one.project, one.workflow) for one in found if one.kind in WITH_CHILDREN]
    return list(dict.fromkeys(names))


def cycle(start: Name, named: Mapping[Name, Sequence[Name]]) -> list[Name]:
    """Return a shortest way from a workflow back to itself, both ends included; empty: none.

    ``named``: by workflow, those that it runs.
    """
    before: dict[Name, Name] = {}
    line = [start]
    for one in line:
        for other in named.get(one, ()):
            if other == start:
                way = [start, one]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1]
            if other not in before:
                before[other] = one
                line.append(other)
    return []


@dataclass(frozen=True)
class WorkflowLink:
    """A reference, and which runs are meant: those of ``date``, a date value, and a task of them.

    Both are None for tasks that run the workflow.
    """

    named: WorkflowReference
    date: str | None = None
    of_task: str | None = None


def links(project: str, definition: Mapping[str, Any]) -> list[WorkflowLink]:
    """Return what the tasks of a definition of ``project`` name, with dates, in their order.

    Those that are disabled wait for nothing.
    """
    found: dict[WorkflowLink, None] = {}
    for task in definition["tasks"]:
        if task.get("enabled") is False:
            continue
        for kind, named in _named(task):
            home = str(named.get("project") or project)
            one = WorkflowReference(str(task["name"]), kind, home, named["workflow"])
            found[WorkflowLink(one, _text(named, "date"), _text(named, "task"))] = None
    return list(found)


def _text(named: Mapping[str, Any], name: str) -> str | None:
    value = named.get(name)
    return value if isinstance(value, str) else None


def renamed(spec: WorkflowSpec, name: str, project: str | None = None) -> dict[str, Any]:
    """Return the definition under another name; where it names itself it goes on doing so."""
    home = project or spec.project
    content = spec.canonical()
    for task in content["tasks"]:
        for _, named in _named(task):
            if (named.get("project") or spec.project, named["workflow"]) == (
                spec.project,
                spec.name,
            ):
                named["workflow"] = name
                if "project" in named:
                    named["project"] = home
    return {**content, "project": home, "name": name}


def _named(task: Mapping[str, Any]) -> Iterator[tuple[LogicKind, dict[str, Any]]]:
    """Yield each mapping of a task's params that names a workflow."""
    params = task.get("params")
    if not isinstance(params, dict):
        return
    match task.get("type"):
        case LogicKind.SUB_WORKFLOW | LogicKind.MAP as kind:
            if isinstance(params.get("workflow"), str):
                yield LogicKind(kind), params
        case LogicKind.DEPENDENT:
            for one in _conditions(params.get("when")):
                yield LogicKind.DEPENDENT, one


def _conditions(when: Any) -> Iterator[dict[str, Any]]:
    if isinstance(when, list | tuple):
        for one in when:
            yield from _conditions(one)
    elif isinstance(when, dict):
        if isinstance(when.get("workflow"), str):
            yield when
        else:
            yield from _conditions(list(when.values()))
