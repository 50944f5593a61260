"""An environment in a file, YAML or JSON, as ``shoal environment show --json`` prints it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shoal.core.checks.workflow import InvalidDefinition, Problem
from shoal.core.definition.environments import EnvironmentSpec, findings
from shoal.core.hints import Hints
from shoal.runtime.documents.source import Source
from shoal.runtime.documents.yaml_file import read_yaml

# What the cluster adds to what is defined.
_SHOWN = frozenset({"name", "version", "created_at", "updated_at", "workflows"})


def read_environment(path: Path) -> EnvironmentSpec:
    """Return the environment that a file holds. Raises InvalidDefinition."""
    problems: list[Problem] = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise InvalidDefinition([Problem((), f"cannot be read: {reason}", str(path), 1)]) from None
    sources = read_yaml(text, str(path), problems)  # JSON is YAML
    if not problems and (len(sources) != 1 or not isinstance(sources[0].value, Mapping)):
        message = "is no environment: a mapping with variables, python and setup"
        problems.append(Problem((), message, str(path), 1))
    if problems:
        raise InvalidDefinition(problems)
    return _checked(sources[0])


def _checked(source: Source) -> EnvironmentSpec:
    fields = {name: value for name, value in source.value.items() if name not in _SHOWN}
    try:
        spec = EnvironmentSpec.model_validate(fields)
    except ValidationError as error:
        problems = [Problem(tuple(item["loc"]), _message(item)) for item in error.errors()]
    else:
        problems = [Problem(tuple(field.split(".")), text) for field, text in findings(spec)]
        if not problems:
            return spec
    raise InvalidDefinition([source.locate(problem) for problem in problems])


def _message(item: Mapping[str, Any]) -> str:
    if item["type"] == "extra_forbidden":
        return f"is no known field{Hints().of(str(item['loc'][0]), EnvironmentSpec.model_fields)}"
    said = str(item["msg"])
    return said[:1].lower() + said[1:]
