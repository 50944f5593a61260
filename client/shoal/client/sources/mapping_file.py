"""A file that holds one mapping, YAML or JSON."""

from collections.abc import Mapping
from pathlib import Path

from shoal.core.checks.workflow import InvalidDefinition, Problem
from shoal.runtime.documents.source import Source
from shoal.runtime.documents.yaml_file import read_yaml


def read_mapping(path: Path, otherwise: str) -> Source:
    """Return the mapping that a file holds. Raises InvalidDefinition.

    ``otherwise``: what is said of a file that holds something else.
    """
    problems: list[Problem] = []
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidDefinition([Problem((), f"cannot be read: {reason}", str(path), 1)]) from None
    sources = read_yaml(text, str(path), problems)  # JSON is YAML
    if not problems and (len(sources) != 1 or not isinstance(sources[0].value, Mapping)):
        problems.append(Problem((), otherwise, str(path), 1))
    if problems:
        raise InvalidDefinition(problems)
    return sources[0]
