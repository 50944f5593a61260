"""Files with objects that are not workflows: an environment, or the alerts of a project.

Both are YAML or JSON, as ``shoal environment show --json`` and ``shoal alert`` print them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ValidationError

from shoal.core.alerts.receivers import ChannelSpec, ReceiverSpec
from shoal.core.alerts.rules import RuleSpec
from shoal.core.checks.workflow import DefinitionProblem, InvalidDefinition
from shoal.core.definition.environments import EnvironmentSpec, findings
from shoal.core.hints import Hints
from shoal.runtime.documents.source import DocumentSource
from shoal.runtime.documents.yaml_file import read_yaml

# What the cluster adds to what is defined.
_SHOWN = frozenset({"name", "version", "created_at", "updated_at", "workflows"})


def read_environment(path: Path) -> EnvironmentSpec:
    """Return the environment that a file holds. Raises InvalidDefinition."""
    message = "is not an environment: a mapping with variables, python and setup"
    source = read_mapping(path, message)
    fields = {name: value for name, value in source.value.items() if name not in _SHOWN}
    try:
        spec = EnvironmentSpec.model_validate(fields)
    except ValidationError as error:
        hints = Hints()
        problems = [
            DefinitionProblem(tuple(item["loc"]), _message(item, hints, EnvironmentSpec))
            for item in error.errors()
        ]
    else:
        problems = [
            DefinitionProblem(tuple(field.split(".")), text) for field, text in findings(spec)
        ]
        if not problems:
            return spec
    raise InvalidDefinition([source.locate(problem) for problem in problems])


def read_mapping(path: Path, otherwise: str) -> DocumentSource:
    """Return the mapping that a file holds. Raises InvalidDefinition.

    ``otherwise``: what is said of a file that holds something else.
    """
    problems: list[DefinitionProblem] = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidDefinition(
            [DefinitionProblem((), f"cannot be read: {reason}", str(path), 1)]
        ) from None
    sources = read_yaml(text, str(path), problems)  # JSON is YAML
    if not problems and (len(sources) != 1 or not isinstance(sources[0].value, Mapping)):
        problems.append(DefinitionProblem((), otherwise, str(path), 1))
    if problems:
        raise InvalidDefinition(problems)
    return sources[0]


AlertThing = Literal["rule", "receiver", "channel"]
# In the order in which they can be made: each names what is above it.
_SECTIONS: Mapping[str, tuple[AlertThing, type[BaseModel]]] = {
    "channels": ("channel", ChannelSpec),
    "receivers": ("receiver", ReceiverSpec),
    "rules": ("rule", RuleSpec),
}


@dataclass(frozen=True)
class Defined:
    """Something that a file defines, as JSON."""

    thing: AlertThing
    name: str
    spec: dict[str, Any]


def read_alerts(path: Path) -> list[Defined]:
    """Return what a file defines, in an order in which it can be made. Raises InvalidDefinition."""
    problems: list[DefinitionProblem] = []
    source = read_mapping(path, "is a mapping with channels, receivers and rules")
    found = list(_defined(source, problems))
    if problems:
        raise InvalidDefinition([source.locate(problem) for problem in problems])
    return found


def _defined(source: DocumentSource, problems: list[DefinitionProblem]) -> Iterator[Defined]:
    hints = Hints()
    for key in source.value:
        if key not in _SECTIONS:
            hint = hints.of(str(key), _SECTIONS)
            problems.append(DefinitionProblem((str(key),), f"is not a known field{hint}"))
    for section, (thing, model) in _SECTIONS.items():
        named = source.value.get(section) or {}
        if not isinstance(named, Mapping):
            problems.append(DefinitionProblem((section,), f"maps names to {section}"))
            continue
        for name, fields in named.items():
            try:
                spec = model.model_validate(fields)
            except ValidationError as error:
                problems += [
                    DefinitionProblem(
                        (section, str(name), *item["loc"]), _message(item, hints, model)
                    )
                    for item in error.errors()
                ]
            else:
                yield Defined(thing, str(name), spec.model_dump(mode="json"))


def _message(item: Any, hints: Hints, model: type[BaseModel]) -> str:
    if item["type"] == "extra_forbidden":
        return f"is not a known field{hints.of(str(item['loc'][-1]), model.model_fields)}"
    said = str(item["msg"]).removeprefix("Value error, ")
    return said[:1].lower() + said[1:]


def written(thing: AlertThing, name: str, spec: Mapping[str, Any]) -> str:
    """Return YAML that defines something as it is; what has its default is left out."""
    [(section, model)] = [(s, m) for s, (one, m) in _SECTIONS.items() if one == thing]
    known = model.model_validate(spec).model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump({section: {name: known}}, sort_keys=False, allow_unicode=True)


def summary(thing: AlertThing, spec: Mapping[str, Any]) -> str:
    """Return a line that says what something is about."""
    match thing:
        case "rule":
            off = "" if spec.get("enabled", True) else "disabled; "
            about = f" about {', '.join(spec['workflows'])}" if spec.get("workflows") else ""
            told = ", ".join(spec.get("receivers", ()))
            return f"{off}{', '.join(spec.get('triggers', ()))}{about} → {told}"
        case "receiver":
            targets = [
                " ".join((target["channel"], *target.get("to", ())))
                for member in spec.get("members", ())
                for target in member.get("targets", ())
            ]
            turns = "in turns: " if spec.get("rotation") else ""
            return f"{turns}{', '.join(targets)}"
        case "channel":
            off = "" if spec.get("enabled", True) else ", disabled"
            return f"{spec.get('kind')}{off}"
