"""A definition as it stands in a file: its plain value and where each part of it is written."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from shoal.core.checks.workflow import DefinitionProblem
from shoal.core.checks.workflow import Path as ValuePath

# Deeper nesting is not a definition; the limit keeps recursion harmless.
MAX_DEPTH = 100


@dataclass(frozen=True)
class SourcePosition:
    """A place in a file. Lines count from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class DocumentSource:
    """One workflow definition before it is checked.

    ``positions`` leads from the path of a value, such as ``("tasks", 2, "type")``, to where it
    is written; the empty path is always there.
    """

    value: Any
    positions: Mapping[ValuePath, SourcePosition] = field(repr=False)

    def where(self, path: ValuePath) -> SourcePosition:
        """Return the position of a value, or of the innermost written one around it."""
        while path not in self.positions:
            path = path[:-1]
        return self.positions[path]

    def locate(self, problem: DefinitionProblem) -> DefinitionProblem:
        """Return ``problem`` with its file and line."""
        position = self.where(problem.path)
        return replace(problem, file=position.file, line=position.line)


def keeps_text(path: ValuePath) -> bool:
    """Whether a number at ``path`` is kept as it is written: parameters and variables are texts.

    So ``default: 1.10`` or ``007`` means just that, not 1.1 or 7.
    """
    match path:
        case ("parameters", _) | ("parameters", _, "default"):
            return True
        case ("variables", _):  # of an environment
            return True
        case ("schedules", _, "parameters", _):
            return True
        case _:
            return False
