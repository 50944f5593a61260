"""What a definition says about resources, checked as people wrote it.

Works on plain data, as ``checks`` does. Yields the path of a value and what is wrong with it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from shoal.core.checks.parameters import Finding, Path
from shoal.core.definition.kinds import is_logic
from shoal.core.macros import placeholders
from shoal.core.task_types import ResourceName, TaskParams, fields_marked


def resources_findings(task: Mapping[str, Any], path: Path) -> Iterator[Finding]:
    """Check the resources that a task names beside its params, and those that it makes."""
    yield from _used_findings(task, path)
    yield from _published_findings(task, path)


def _used_findings(task: Mapping[str, Any], path: Path) -> Iterator[Finding]:
    named = task.get("resources")
    named = [named] if isinstance(named, str) else named
    if not isinstance(named, list | tuple) or not named:
        return
    kind = task.get("type")
    if isinstance(kind, str) and is_logic(kind):
        yield (*path, "resources"), "a task that the master runs itself uses no resources"
    for index, text in enumerate(named):
        if isinstance(text, str):
            yield from _problems(text, (*path, "resources", index))


def _published_findings(task: Mapping[str, Any], path: Path) -> Iterator[Finding]:
    publish = task.get("publish")
    if not isinstance(publish, Mapping) or not publish:
        return
    kind = task.get("type")
    if isinstance(kind, str) and is_logic(kind):
        yield (*path, "publish"), "a task that the master runs itself makes no files"
    before: dict[str, str] = {}
    for file, target in publish.items():
        place = (*path, "publish", str(file))
        for text in (file, target):
            if isinstance(text, str):
                yield from _problems(text, place)
        if isinstance(file, str) and isinstance(target, str):
            first = before.setdefault(target, file)
            if first != file:
                yield (
                    place,
                    f"becomes {target!r:.120}, as {first!r:.120} does; one of them would be lost",
                )


def names_findings(model: type[TaskParams], params: Mapping[str, Any]) -> Iterator[Finding]:
    """Check the fields of a task's ``params`` that name resources."""
    for name in sorted(fields_marked(model, ResourceName)):
        if isinstance(text := params.get(name), str) and placeholders.secrets_named(text):
            yield (name,), "a secret cannot be the name of a resource"


def _problems(text: str, path: Path) -> Iterator[Finding]:
    yield from ((path, message) for message in placeholders.check(text))
    if placeholders.secrets_named(text):
        yield path, "a secret cannot be the name of a resource"
