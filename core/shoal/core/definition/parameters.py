"""Parameters of workflows: their types, their defaults, the values given at a launch."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any, Self

from pydantic import field_validator, model_validator

from shoal.core.definition.fields import Strict, scalar_text
from shoal.core.errors import LONGEST_REASON, shortened
from shoal.core.hints import MOST_MISTAKES
from shoal.core.macros import placeholders

# Parameters reach processes as environment variables; these would change the process itself.
RESERVED_PARAMETERS = frozenset(
    {"PATH", "HOME", "USER", "SHELL", "IFS", "ENV", "BASH_ENV", "PWD", "TMPDIR", "LANG"}
    | {"JAVA_HOME", "PYTHONPATH", "PYTHONHOME"}
)
RESERVED_PREFIXES = ("SHOAL_", "LD_", "BASH_FUNC")
# The same as a pattern, to be matched in full whatever the case.
RESERVED_PATTERN = "|".join(
    [*sorted(RESERVED_PARAMETERS), *(f"{prefix}.*" for prefix in RESERVED_PREFIXES)]
)
# Before the name of a project's parameter; no parameter's own name has a dot in it.
PROJECT_PREFIX = "project."


class ParameterType(StrEnum):
    """How a parameter's value is checked at launch. Values travel as text."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"  # YYYY-MM-DD


class ParameterSpec(Strict):
    """One parameter of a workflow. Without a default it must be given at every launch."""

    default: str | None = None
    type: ParameterType = ParameterType.STRING
    description: str = ""

    @field_validator("default", mode="before")
    @classmethod
    def _scalar_as_text(cls, value: Any) -> Any:
        return scalar_text(value)

    @model_validator(mode="after")
    def _default_fits(self) -> Self:
        if self.default is not None and "$" not in self.default:
            check_value(self.type, self.default)
        return self


def check_value(kind: ParameterType, text: str) -> None:
    """Raise ValueError if ``text`` is not a value of type ``kind``."""
    try:
        match kind:
            case ParameterType.INTEGER:
                int(text)
            case ParameterType.NUMBER:
                float(text)
            case ParameterType.BOOLEAN:
                if text not in ("true", "false"):
                    raise ValueError
            case ParameterType.DATE:
                datetime.strptime(text, "%Y-%m-%d")
            case ParameterType.STRING:
                if "\0" in text:
                    raise ValueError
    except ValueError:
        raise ValueError(f"{shortened(repr(text), 120)} is not a valid {kind}") from None


def reserved_parameter(name: str) -> bool:
    """Say whether a parameter of this name would change the processes that receive it."""
    return name.upper() in RESERVED_PARAMETERS or name.upper().startswith(RESERVED_PREFIXES)


def secret_problem(text: str) -> str | None:
    """Return why a value that comes from outside may not name a secret; None if it does not."""
    named = placeholders.secrets_named(text)
    if not named:
        return None
    return (
        f"names the secret {min(named)}; secrets are for definitions (of a workflow, a task, a "
        "project), not for values given at a start"
    )


def definition_problem(name: str, text: str) -> str | None:
    """Return what is wrong with the definition of a parameter that has no declared type."""
    if reserved_parameter(name):
        return f"{name!r} is reserved: it would change the processes that receive it"
    if "\0" in text:
        return "holds a NUL character, which no program could receive"
    mistakes = placeholders.check(text)
    return f"{mistakes[0]} (write $$ for a plain $)" if mistakes else None


def launch_problems(
    specs: Mapping[str, ParameterSpec], given: Mapping[str, str], *, data: bool = True
) -> dict[str, str]:
    """Return what is wrong with startup values, by parameter: unknown, missing, ill-typed.

    ``data``: the values are taken character by character. Otherwise they are definitions, as
    those of a schedule, which may hold date expressions and other parameters.
    """
    known = shortened(", ".join(specs) or "none", 300)
    unknown = (name for name in given if name not in specs)
    problems = dict.fromkeys(
        islice(unknown, MOST_MISTAKES), f"the workflow has no such parameter; it has: {known}"
    )
    for name, parameter in specs.items():
        value = given.get(name, parameter.default)
        if len(problems) >= MOST_MISTAKES:
            break
        if value is None:
            problems[name] = "has no default, give a value"
        elif name in given and (named := secret_problem(value)):
            problems[name] = named
        elif "$" in value and not (data and name in given):
            # Rendered when a task starts, so only the placeholders are checked.
            mistakes = placeholders.check(value)
            if mistakes:
                problems[name] = f"{mistakes[0]} (write $$ for a plain $)"
        else:
            try:
                check_value(parameter.type, value)
            except ValueError as error:
                problems[name] = str(error)
    return problems


@dataclass(frozen=True)
class Launch:
    """The parameters of one run as definitions: ``${…}`` and ``$[…]`` in them are rendered.

    ``startup`` are those given at the start. ``parameters`` are all of them, that is startup over
    the workflow's over the project's. A project's value that the workflow's default builds on
    (``path: ${path}/daily``) is kept beside it, as ``project.path``.
    """

    parameters: Mapping[str, str]
    startup: Mapping[str, str]


def launch(
    specs: Mapping[str, ParameterSpec],
    project: Mapping[str, str],
    given: Mapping[str, str],
    *,
    data: bool = True,
) -> Launch:
    """Return the parameters of one run. ``data``: see ``launch_problems``.

    Raises ValueError listing everything that ``launch_problems`` finds.
    """
    problems = launch_problems(specs, given, data=data)
    if problems:
        listed = "; ".join(f"{name}: {text}" for name, text in problems.items())
        raise ValueError(shortened(listed, LONGEST_REASON))
    startup = {name: placeholders.escape(value) if data else value for name, value in given.items()}
    defaults = {name: parameter.default or "" for name, parameter in specs.items()}
    hidden = {
        PROJECT_PREFIX + name: project[name]
        for name, default in defaults.items()
        if name in project and name in placeholders.names(default)
    }
    return Launch({**hidden, **project, **defaults, **startup}, startup)
