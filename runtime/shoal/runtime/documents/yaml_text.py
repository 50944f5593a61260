"""Write definitions as YAML for people: texts of several lines as blocks."""

from collections.abc import Iterable
from typing import Any

import yaml

from shoal.runtime.documents.yaml_file import plain_value


class _Dumper(yaml.SafeDumper):
    """Quotes what YAML 1.1 readers would take for something else, as ours and others do."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # PyYAML quotes what YAML 1.1 readers take for something else; ours reads YAML 1.2.
    style = "|" if "\n" in text else '"' if plain_value(text) is not text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    short = all(isinstance(i, str | int | float) and "\n" not in str(i) for i in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def documents_yaml(documents: Iterable[dict[str, Any]]) -> str:
    """Return definitions as one text of YAML documents."""
    return "---\n".join(definition_yaml(one) for one in documents)


def definition_yaml(definition: dict[str, Any]) -> str:
    """Return a definition as a YAML document. Reading it gives exactly these values."""
    return yaml.dump(
        definition, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100, indent=2
    )
