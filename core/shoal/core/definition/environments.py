"""Environments: what programs of tasks find around them, set by an administrator under a name.

An environment belongs to the cluster, not to a project. A workflow names one for its tasks, a task
may name another one, or none.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field, StrictStr

from shoal.core.definition.fields import NAME_PATTERN, PARAMETER_PATTERN, Name, Strict
from shoal.core.macros.placeholders import SECRETS_PREFIX

#: What a task names that is to run without its workflow's environment.
NO_ENVIRONMENT = "none"
MOST_VARIABLES = 500
MOST_GROUPS = 100
LONGEST_VALUE = 32 * 1024  # bytes
MOST_BYTES = 128 * 1024  # of all variables; parameters and secrets need room, too
LARGEST_SETUP = 64 * 1024  # bytes
LONGEST_DESCRIPTION = 1_000  # characters
LONGEST_PYTHON = 1_024  # characters
LONGEST_LABEL = 120  # characters of NAME@VERSION

#: Made by Shoal for each attempt, whatever else a program is given.
_SHOALS_OWN = frozenset({"PWD", "TMPDIR"})
_SHOALS_PREFIX = "SHOAL_"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NOT_IN_PROSE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

Finding = tuple[str, str]  # the field, and what is wrong with it


def _no_default_none(name: str) -> str:
    if name == NO_ENVIRONMENT:
        raise ValueError(f"{name!r} is for tasks; a workflow without an environment names none")
    return name


#: What a workflow names.
DefaultEnvironment = Annotated[Name, AfterValidator(_no_default_none)]


class EnvironmentSpec(Strict):
    """An environment as an administrator defines it, without its name."""

    description: StrictStr = Field(
        default="", max_length=LONGEST_DESCRIPTION, description="What it is for."
    )
    variables: dict[str, StrictStr] = Field(
        default_factory=dict,
        max_length=MOST_VARIABLES,
        description="Environment variables, each value as it stands: nothing is rendered. "
        "All users can read them: do not put secrets here.",
    )
    python: StrictStr = Field(
        default="",
        max_length=LONGEST_PYTHON,
        description="Absolute path, on the workers, of an interpreter or of a virtual environment. "
        "PYTHON tasks use it, and its programs come first in PATH. Empty: none.",
    )
    setup: StrictStr = Field(
        default="",
        description="Text for bash, sourced in the process of a task before its program. Empty: "
        "none.",
    )
    worker_groups: tuple[Name, ...] = Field(
        default=(), max_length=MOST_GROUPS, description="Whose workers have it; none: all."
    )


def name_problem(name: str) -> str | None:
    """Return why no environment can have this name; None if one can."""
    if name.lower() == NO_ENVIRONMENT:
        return f"{name!r} cannot be a name: tasks that are to have no environment say so"
    if not re.fullmatch(NAME_PATTERN, name):
        return "start with a letter or digit, then letters, digits, '_', '.' or '-'"
    return None


def findings(spec: EnvironmentSpec) -> Iterator[Finding]:
    """Yield everything that is wrong with an environment."""
    if _NOT_IN_PROSE.search(spec.description):
        yield "description", "holds a control character"
    yield from _variables(spec)
    yield from _python(spec.python)
    if "\0" in spec.setup:
        yield "setup", "holds the NUL character"
    if "\r" in spec.setup:
        yield "setup", "holds a carriage return, which bash takes for a part of commands"
    if (size := len(spec.setup.encode("utf-8", "replace"))) > LARGEST_SETUP:
        yield "setup", f"has {size:,} bytes, at most {LARGEST_SETUP:,} are allowed"
    for index, group in enumerate(spec.worker_groups):
        if group in spec.worker_groups[:index]:
            yield f"worker_groups[{index}]", f"{group} stands there twice"


def _variables(spec: EnvironmentSpec) -> Iterator[Finding]:
    for name, value in spec.variables.items():
        if problem := _name_of_variable(name, spec) or _value_of_variable(value):
            yield f"variables.{name}", problem
    texts = (f"{name}={value}" for name, value in spec.variables.items())
    size = sum(len(text.encode("utf-8", "replace")) for text in texts)
    if size > MOST_BYTES:
        yield "variables", f"make {size:,} bytes, at most {MOST_BYTES:,} are allowed"


def _name_of_variable(name: str, spec: EnvironmentSpec) -> str | None:
    if not re.fullmatch(PARAMETER_PATTERN, name):
        return "is not a name of a variable: letters, digits, '_'"
    if name.startswith(_SHOALS_PREFIX) or name in _SHOALS_OWN:
        return "is set by Shoal for each attempt"
    if name == "VIRTUAL_ENV" and spec.python:
        return "follows from `python`"
    return None


def _value_of_variable(value: str) -> str | None:
    if "\0" in value:
        return "holds the NUL character"
    if (size := len(value.encode("utf-8", "replace"))) > LONGEST_VALUE:
        return f"has {size:,} bytes, at most {LONGEST_VALUE:,} are allowed"
    if "${" + SECRETS_PREFIX in value:
        return (
            "names a secret, and nothing is rendered here: give the tasks that need it a "
            "parameter, or name the variable SHOAL_SECRET_… in their programs"
        )
    return None


def _python(path: str) -> Iterator[Finding]:
    if not path:
        return
    if _CONTROL.search(path):
        yield "python", "holds a control character"
    elif not path.startswith("/") or ".." in path.split("/"):
        yield "python", "must be an absolute path on the workers, without `..`"
    elif ":" in path:
        yield "python", "holds a colon, which PATH cannot hold"


def allows(worker_groups: Iterable[str], group: str) -> bool:
    """Say whether tasks of a worker group may use an environment that is for ``worker_groups``."""
    groups = tuple(worker_groups)
    return not groups or group in groups


def label(name: str, version: int) -> str:
    """Return how people, and attempts, name a version of an environment."""
    return f"{name}@{version}"


@dataclass(frozen=True)
class StoredEnvironment:
    """An environment as it is now. ``version`` grows with each change."""

    name: str
    spec: EnvironmentSpec
    version: int
    created_at: datetime
    updated_at: datetime
