"""An environment in a file, YAML or JSON, as ``shoal environment show --json`` prints it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from shoal.client.sources.mapping_file import read_mapping
from shoal.core.checks.workflow import InvalidDefinition, Problem
from shoal.core.definition.environments import EnvironmentSpec, findings
from shoal.core.hints import Hints
from shoal.runtime.documents.source import Source

# What the cluster adds to what is defined.
_SHOWN = frozenset({"name", "version", "created_at", "updated_at", "workflows"})


def read_environment(path: Path) -> EnvironmentSpec:
    """Return the environment that a file holds. Raises InvalidDefinition."""
    message = "is not an environment: a mapping with variables, python and setup"
    return _checked(read_mapping(path, message))


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
        return (
            f"is not a known field{Hints().of(str(item['loc'][0]), EnvironmentSpec.model_fields)}"
        )
    said = str(item["msg"])
    return said[:1].lower() + said[1:]
