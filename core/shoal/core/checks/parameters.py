"""What a definition says about parameters, dates and secrets, checked as people wrote it.

Works on plain data, as ``checks`` does. Yields the path of a value and what is wrong with it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shoal.core.data_sources.references import is_source_name, sources_named
from shoal.core.definition.fields import PARAMETER_PATTERN
from shoal.core.definition.parameters import reserved_parameter, secret_problem
from shoal.core.macros import placeholders
from shoal.core.task_types import CommandLine, TaskParams, Verbatim, fields_marked

Path = tuple[str | int, ...]
Finding = tuple[Path, str]


def params_findings(
    model: type[TaskParams], params: Mapping[str, Any], *, on_worker: bool
) -> Iterator[Finding]:
    """Check the placeholders of every text in a task's ``params``, which ``model`` describes.

    ``on_worker``: a worker runs such tasks, not the master itself.
    """
    programs, command_line = fields_marked(model, Verbatim), fields_marked(model, CommandLine)
    names = {path: text for path, text, _ in sources_named(model, params)}
    yield from ((path, one) for path, text in names.items() if (one := _bad_source_name(text)))
    for name, value in params.items():
        for path, text in _texts(value, (str(name),)):
            yield from ((path, message) for message in placeholders.check(text))
            for secret in sorted(placeholders.secrets_named(text)):
                if path in names:
                    message = "a secret cannot be the name of a data source"
                elif not on_worker:
                    message = "a task that the master runs is given no secrets"
                elif name in programs:
                    message = (
                        f"secrets are not pasted into programs; read the variable "
                        f"SHOAL_SECRET_{secret}, which the program gets because it names it, or in "
                        f"SQL a parameter of the task whose value is ${{secret.{secret}}}"
                    )
                elif name in command_line:
                    message = (
                        f"the secret {secret} would stand on a command line, where every user of "
                        f"the machine could read it; read the variable SHOAL_SECRET_{secret}"
                    )
                else:
                    message = bad_secret_name(secret) or ""
                if message:
                    yield path, message


def _bad_source_name(text: str) -> str | None:
    if placeholders.is_open(text) or is_source_name(text):
        return None
    return (
        "is not a name of a data source: letters, digits, '_', at most 100 characters; one that "
        "another project shares is PROJECT/NAME"
    )


def bad_secret_name(name: str) -> str | None:
    """Return why no secret can have this name; None if one can."""
    if re.fullmatch(PARAMETER_PATTERN, name):
        return None
    return f"{name!r} is not a name of a secret: letters, digits, '_', at most 100 characters"


def parameters_findings(raw: Mapping[str, Any]) -> Iterator[Finding]:
    """Check the parameters of the workflow, its tasks and its schedules."""
    own = raw.get("parameters")
    own = own if isinstance(own, Mapping) else {}
    yield from _definitions(own, ("parameters",))
    for index, task in enumerate(_list(raw.get("tasks"))):
        given = task.get("parameters") if isinstance(task, Mapping) else None
        if isinstance(given, Mapping):
            yield from _definitions(given, ("tasks", index, "parameters"))
    for index, schedule in enumerate(_list(raw.get("schedules"))):
        given = schedule.get("parameters") if isinstance(schedule, Mapping) else None
        for name, value in given.items() if isinstance(given, Mapping) else ():
            path = ("schedules", index, "parameters", str(name))
            if name not in own:
                yield path, "the workflow has no such parameter"
            if isinstance(value, str):
                yield from ((path, message) for message in placeholders.check(value))
                if problem := secret_problem(value):
                    yield path, problem


def _definitions(parameters: Mapping[Any, Any], path: Path) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name, value in parameters.items():
        if not isinstance(name, str):
            continue
        if reserved_parameter(name):
            yield (
                (*path, name),
                f"{name!r} is reserved: parameters become "
                "environment variables, and this one would change the process",
            )
        twin = seen.setdefault(name.upper(), name)
        if twin != name:
            yield (*path, name), f"differs from {twin!r} only in case"
        for inner, text in _texts(value, (*path, name)):
            yield from ((inner, message) for message in placeholders.check(text))
            for secret in sorted(placeholders.secrets_named(text)):
                if problem := bad_secret_name(secret):
                    yield inner, problem


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield every text below ``value`` with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
