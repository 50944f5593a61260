"""Read a JSON definition with the line of every value."""

import json
import re
from typing import Any

from shoal.core.checks.workflow import DefinitionProblem
from shoal.core.checks.workflow import Path as ValuePath
from shoal.runtime.documents.source import MAX_DEPTH, DocumentSource, SourcePosition, keeps_text

_SPACE = re.compile(r"[ \t\n\r]*")
_WORD = re.compile(r"[^\s,\]}]+")


class _TooDeep(Exception):
    def __init__(self, line: int) -> None:
        self.line = line


def read_json(text: str, file: str, problems: list[DefinitionProblem]) -> list[DocumentSource]:
    """Return the one definition of ``text``; what is wrong is added to ``problems``."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg} (column {error.colno})"
        problems.append(DefinitionProblem((), message, file, error.lineno))
        return []
    except ValueError as error:  # NaN, or a number of thousands of digits
        problems.append(DefinitionProblem((), f"is not JSON: {error}", file, 1))
        return []
    except RecursionError:
        problems.append(
            DefinitionProblem((), f"is nested more than {MAX_DEPTH} levels deep", file, 1)
        )
        return []
    try:
        return [_JsonReader(text, file, problems).read()]
    except _TooDeep as error:
        message = f"is nested more than {MAX_DEPTH} levels deep"
        problems.append(DefinitionProblem((), message, file, error.line))
        return []


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


class _JsonReader:
    """Walks over text that has been found valid."""

    def __init__(self, text: str, file: str, problems: list[DefinitionProblem]) -> None:
        self._text, self._file, self._problems = text, file, problems
        self._decoder = json.JSONDecoder()
        self._at = 0  # index of the next character
        self._line, self._line_at = 1, 0  # the line of that index
        self._positions: dict[ValuePath, SourcePosition] = {}

    def read(self) -> DocumentSource:
        self._skip()
        self._positions[()] = self._position()
        return DocumentSource(self._value((), 0), self._positions)

    def _value(self, path: ValuePath, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise _TooDeep(self._position().line)
        match self._text[self._at]:
            case "{":
                return self._object(path, depth)
            case "[":
                return self._array(path, depth)
            case '"':
                return self._string()
        word = _WORD.match(self._text, self._at)
        assert word is not None, "the text is valid JSON"
        self._at = word.end()
        value = json.loads(word[0])
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return word[0] if number and keeps_text(path) else value

    def _object(self, path: ValuePath, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._step()
        while self._text[self._at] != "}":
            position = self._position()
            key = self._string()
            inner = (*path, key)
            if key in found:
                message = f"stands already in line {self._positions[inner].line}; keep one"
                self._problems.append(DefinitionProblem(inner, message, self._file, position.line))
            else:
                self._positions[inner] = position
            self._skip()
            self._step()  # the colon
            found[key] = self._value(inner, depth + 1)
            self._separator()
        self._at += 1
        return found

    def _array(self, path: ValuePath, depth: int) -> list[Any]:
        found: list[Any] = []
        self._step()
        while self._text[self._at] != "]":
            inner = (*path, len(found))
            self._positions[inner] = self._position()
            found.append(self._value(inner, depth + 1))
            self._separator()
        self._at += 1
        return found

    def _string(self) -> str:
        value, self._at = self._decoder.raw_decode(self._text, self._at)
        return str(value)

    def _separator(self) -> None:
        self._skip()
        if self._text[self._at] == ",":
            self._step()

    def _step(self) -> None:
        """Go over one character and the space behind it."""
        self._at += 1
        self._skip()

    def _skip(self) -> None:
        space = _SPACE.match(self._text, self._at)
        assert space is not None, "it matches nothing at least"
        self._at = space.end()

    def _position(self) -> SourcePosition:
        self._line += self._text.count("\n", self._line_at, self._at)
        self._line_at = self._at
        return SourcePosition(self._file, self._line)
