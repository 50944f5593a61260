"""Parameters of workflows: their types, their defaults, the values given at a launch."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, Self

from pydantic import field_validator, model_validator

from shoal.core import macros
from shoal.core.fields import Strict, scalar_text

# Parameters reach processes as environment variables; these would change the process itself.
RESERVED_PARAMETERS = frozenset(
    {"PATH", "HOME", "USER", "SHELL", "IFS", "ENV", "BASH_ENV", "PWD", "TMPDIR", "LANG"}
    | {"JAVA_HOME", "PYTHONPATH", "PYTHONHOME"}
)
RESERVED_PREFIXES = ("SHOAL_", "LD_", "BASH_FUNC")


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
    """Raise ValueError if ``text`` is no value of type ``kind``."""
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
        raise ValueError(f"{text!r} is no {kind}") from None


def reserved_parameter(name: str) -> bool:
    """Say whether a parameter of this name would change the processes that receive it."""
    return name.upper() in RESERVED_PARAMETERS or name.upper().startswith(RESERVED_PREFIXES)


def launch_problems(specs: Mapping[str, ParameterSpec], given: Mapping[str, str]) -> dict[str, str]:
    """Return what is wrong with startup values, by parameter: unknown, missing, ill-typed."""
    known = ", ".join(specs) or "none"
    problems = {
        name: f"the workflow has no such parameter; it has: {known}"
        for name in given
        if name not in specs
    }
    for name, parameter in specs.items():
        value = given.get(name, parameter.default)
        if value is None:
            problems[name] = "has no default, give a value"
        elif "$" in value:  # rendered when a task starts, so only the placeholders are checked
            mistakes = macros.check(value)
            if mistakes:
                problems[name] = f"{mistakes[0]} (write $$ for a plain $)"
        else:
            try:
                check_value(parameter.type, value)
            except ValueError as error:
                problems[name] = str(error)
    return problems


def launch_parameters(
    specs: Mapping[str, ParameterSpec], given: Mapping[str, str]
) -> dict[str, str]:
    """Return the parameters of one run: startup values over defaults.

    Raises ValueError listing everything that ``launch_problems`` finds.
    """
    problems = launch_problems(specs, given)
    if problems:
        raise ValueError("; ".join(f"{name}: {text}" for name, text in problems.items()))
    return {name: given.get(name, parameter.default or "") for name, parameter in specs.items()}
