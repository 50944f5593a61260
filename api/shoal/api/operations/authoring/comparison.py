"""Two versions of a definition side by side: as a graph, field by field, and as text."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any

from shoal.core.definition.diff import Change, diff
from shoal.runtime.documents.yaml_text import definition_yaml

_SHORT_TASKS = 50
_SHORT_CHARACTERS = 16_000
# Of each text. The time may grow with the third power of their number, however short they are.
_SHORT_LINES = 500
MOST_LINES = 20_000  # of both texts together: beyond that they are not compared line by line


@dataclass(frozen=True)
class ChangedTask:
    """A task that both versions have, and what differs; paths are within the task."""

    task: str
    changes: tuple[Change, ...]


@dataclass(frozen=True)
class TaskEdge:
    """``target`` depends on ``source``."""

    source: str
    target: str


@dataclass(frozen=True)
class DefinitionComparison:
    """What differs. ``text``: a unified diff; None if the texts are too long."""

    fields: tuple[Change, ...] = ()  # all but those below
    parameters: tuple[Change, ...] = ()
    schedules: tuple[Change, ...] = ()
    tasks_added: tuple[str, ...] = ()
    tasks_removed: tuple[str, ...] = ()
    tasks_changed: tuple[ChangedTask, ...] = ()
    edges_added: tuple[TaskEdge, ...] = ()
    edges_removed: tuple[TaskEdge, ...] = ()
    text: str | None = ""


@dataclass(frozen=True)
class Side:
    """One of the two: its canonical form (empty: nothing was there), what it is called, its text.

    Without a text it is written anew.
    """

    content: Mapping[str, Any]
    label: str
    text: str | None = field(default=None, repr=False)

    def written(self) -> str:
        """Return the text."""
        if self.text is not None:
            return self.text
        return definition_yaml(dict(self.content)) if self.content else ""


def compare(before: Side, after: Side, *, lines: bool = True) -> DefinitionComparison:
    """Return what differs from ``before`` to ``after``; without ``lines`` there is no text.

    The time grows with the definitions. That of their lines may grow with the third power of their
    number, so ``compared`` in ``plan`` does that elsewhere.
    """
    old, new = _tasks(before.content), _tasks(after.content)
    changed = (ChangedTask(name, tuple(diff(old[name], new[name]))) for name in old if name in new)
    edges, edges_now = set(_edges(old)), set(_edges(new))
    before, after = _alike(before, after)
    return DefinitionComparison(
        fields=tuple(diff(_rest(before.content), _rest(after.content))),
        parameters=_of("parameters", before.content, after.content, {}),
        schedules=_of("schedules", before.content, after.content, []),
        tasks_added=tuple(name for name in new if name not in old),
        tasks_removed=tuple(name for name in old if name not in new),
        tasks_changed=tuple(one for one in changed if one.changes),
        edges_added=tuple(edge for edge in _edges(new) if edge not in edges),
        edges_removed=tuple(edge for edge in _edges(old) if edge not in edges_now),
        text=_text(before, after) if lines else None,
    )


def _tasks(content: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {task["name"]: task for task in content.get("tasks", ())}


def _edges(tasks: Mapping[str, Mapping[str, Any]]) -> Iterator[TaskEdge]:
    for name, task in tasks.items():
        for upstream in task.get("depends_on", ()):
            yield TaskEdge(upstream, name)


def _rest(content: Mapping[str, Any]) -> dict[str, Any]:
    left_out = ("tasks", "parameters", "schedules")
    return {key: value for key, value in content.items() if key not in left_out}


def _of(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any], nothing: Any
) -> tuple[Change, ...]:
    return tuple(diff({name: before.get(name, nothing)}, {name: after.get(name, nothing)}))


def is_short(before: Side, after: Side) -> bool:
    """Return whether two sides are compared in a moment, whatever they hold."""
    for side in (before, after):
        if (
            len(side.content.get("tasks", ())) > _SHORT_TASKS
            or len(side.text or "") > _SHORT_CHARACTERS
            or len(json.dumps(side.content)) > _SHORT_CHARACTERS
        ):
            return False
    return all(len(one.written().splitlines()) <= _SHORT_LINES for one in _alike(before, after))


def _alike(before: Side, after: Side) -> tuple[Side, Side]:
    """Return the sides as their texts are compared: both as users wrote them, or both anew.

    Otherwise each comment would differ.
    """
    if before.text is None or after.text is None:
        return Side(before.content, before.label), Side(after.content, after.label)
    return before, after


def _text(before: Side, after: Side) -> str | None:
    if _fewest_lines(before) + _fewest_lines(after) > MOST_LINES:
        return None  # to write them would take longer than all the rest
    old, new = before.written().splitlines(), after.written().splitlines()
    if len(old) + len(new) > MOST_LINES:
        return None
    return "\n".join(unified_diff(old, new, before.label, after.label, lineterm=""))


def _fewest_lines(side: Side) -> int:
    """Return how many lines a side has at least: each field of a task has one."""
    if side.text is not None:
        return 0
    return sum(len(task) for task in side.content.get("tasks", ()))
