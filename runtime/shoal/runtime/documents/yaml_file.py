"""Read YAML definitions with the line of every value.

YAML 1.2's core schema: ``true`` and ``false`` are the only truth values, dates are text. Anchors,
aliases and merge keys (``<<``) work; top-level keys that begin with ``x-`` are for anchors only
and dropped. Tags other than the core ones are refused. Built from parser events in one pass: the
usual composer recurses without a limit and takes the last one of equal keys.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from shoal.core.checks.workflow import DefinitionProblem
from shoal.core.checks.workflow import Path as ValuePath
from shoal.runtime.documents.source import MAX_DEPTH, DocumentSource, SourcePosition, keeps_text

# Values after all aliases are expanded: stops files that double themselves with every line.
MAX_VALUES = 1_000_000

_CORE = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}")
_OTHER_BASE = re.compile(r"0o[0-7]{1,4000}|0x[0-9a-fA-F]{1,4000}")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTHS = {"true": True, "True": True, "TRUE": True}
_TRUTHS |= {"false": False, "False": False, "FALSE": False}


class _Stop(Exception):
    """The rest of the file cannot be read; the problem has been noted."""


@dataclass(frozen=True)
class _Anchored:
    value: Any
    size: int


@dataclass
class _Document:
    """What is known of the document that is being read."""

    positions: dict[ValuePath, SourcePosition] = field(default_factory=dict)
    # None: being built, an alias to it would hold itself.
    anchors: dict[str, _Anchored | None] = field(default_factory=dict)
    size: int = 0


def read_yaml(text: str, file: str, problems: list[DefinitionProblem]) -> list[DocumentSource]:
    """Return the documents of ``text``; what is wrong is added to ``problems``."""
    return _Reader(text, file, problems).read()


def _parser(text: str) -> Any:
    """Return a source of events: libyaml's, or the slower one in Python."""
    return yaml.CBaseLoader(text) if yaml.__with_libyaml__ else yaml.BaseLoader(text)


class _Reader:
    def __init__(self, text: str, file: str, problems: list[DefinitionProblem]) -> None:
        self._file, self._problems = file, problems
        self._text = text
        self._document = _Document()

    def read(self) -> list[DocumentSource]:
        sources: list[DocumentSource] = []
        try:
            self._parser = _parser(self._text)
            self._next()  # the stream starts
            while isinstance(event := self._next(), yaml.DocumentStartEvent):
                source = self._read_document(event)
                if source is not None:
                    sources.append(source)
        except _Stop:
            pass
        except yaml.MarkedYAMLError as error:
            self._note_syntax(error)
        except yaml.YAMLError as error:
            self._problems.append(DefinitionProblem((), f"is not YAML: {error}", self._file, 1))
        return sources

    def _next(self) -> Any:
        return self._parser.get_event()

    def _read_document(self, start: Any) -> DocumentSource | None:
        document = self._document = _Document()
        first = self._next()
        document.positions[()] = self._position(first)
        value = self._build(first, (), 0)
        self._next()  # the document ends
        if value is None and not start.explicit:
            return None  # nothing but comments
        if isinstance(value, dict):
            value = {
                key: item
                for key, item in value.items()
                if not (isinstance(key, str) and key.startswith("x-"))
            }
        return DocumentSource(value, document.positions)

    def _build(self, event: Any, path: ValuePath, depth: int) -> Any:
        """Return the value that begins with ``event``."""
        document = self._document
        document.size += 1
        if depth > MAX_DEPTH:
            self._stop(event, (), f"is nested more than {MAX_DEPTH} levels deep")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        before = document.size
        if event.anchor is not None:
            document.anchors[event.anchor] = None
        value: Any
        match event:
            case yaml.MappingStartEvent():
                value = self._mapping(event, path, depth)
            case yaml.SequenceStartEvent():
                value = self._sequence(event, path, depth)
            case _:
                value = self._scalar(event, path)
        if event.anchor is not None:
            document.anchors[event.anchor] = _Anchored(value, document.size - before)
        return value

    def _alias(self, event: Any, path: ValuePath) -> Any:
        name = event.anchor
        found = self._document.anchors.get(name)
        if found is None:
            above = name in self._document.anchors
            what = "would hold itself" if above else "has no anchor above it"
            self._stop(event, path, f"the alias *{name} {what}")
        self._document.size += found.size
        if self._document.size > MAX_VALUES:
            self._stop(event, path, f"aliases expand to more than {MAX_VALUES:,} values")
        return found.value

    def _sequence(self, start: Any, path: ValuePath, depth: int) -> list[Any]:
        self._check_tag(start, path, "seq")
        items: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            inner = (*path, len(items))
            self._document.positions[inner] = self._position(event)
            items.append(self._build(event, inner, depth + 1))
        return items

    def _mapping(self, start: Any, path: ValuePath, depth: int) -> dict[str, Any]:
        self._check_tag(start, path, "map")
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._key(event, path)
            plain = isinstance(event, yaml.ScalarEvent) and event.implicit[0]
            value_event = self._next()
            if key == "<<" and plain:
                self._merge(value_event, path, depth, merged)
                continue
            inner = (*path, key)
            if key in own:
                self._note(event, inner, f"stands already in line {lines[key]}; keep one")
            else:
                self._document.positions[inner] = self._position(event)
                lines[key] = event.start_mark.line + 1
            own[key] = self._build(value_event, inner, depth + 1)
        return {**merged, **own} if merged else own

    def _key(self, event: Any, path: ValuePath) -> str:
        if isinstance(event, yaml.ScalarEvent):
            return str(event.value)
        value = self._alias(event, path) if isinstance(event, yaml.AliasEvent) else None
        if isinstance(value, str):
            return value
        return self._stop(event, path, "a key must be a text; put values with { or ${ into quotes")

    def _merge(self, event: Any, path: ValuePath, depth: int, into: dict[str, Any]) -> None:
        value = self._build(event, (*path, "<<"), depth + 1)
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                for key, item in part.items():
                    into.setdefault(key, item)
            else:
                self._note(event, path, "<< merges mappings, and this is none")

    def _scalar(self, event: Any, path: ValuePath) -> Any:
        text = str(event.value)
        if event.tag in ("!", _CORE + "str") or (event.tag is None and not event.implicit[0]):
            return text
        convert = _BY_TAG.get(event.tag) if event.tag else plain_value
        if convert is None:
            self._check_tag(event, path, "str")
            return text
        value = convert(text)
        if value is _NONE:
            self._note(event, path, f"{text[:50]!r} is not a valid {event.tag.removeprefix(_CORE)}")
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and keeps_text(path):
            return text
        return value

    def _check_tag(self, event: Any, path: ValuePath, usual: str) -> None:
        if event.tag not in (None, "!", _CORE + usual):
            tag = event.tag.replace(_CORE, "!!")
            self._note(event, path, f"the tag {tag} means nothing here; leave it out")

    # -- problems ----------------------------------------------------------------------------

    def _position(self, event: Any) -> SourcePosition:
        return SourcePosition(self._file, event.start_mark.line + 1)

    def _note(self, event: Any, path: ValuePath, message: str) -> None:
        line = event.start_mark.line + 1
        self._problems.append(DefinitionProblem(path, message, self._file, line))

    def _stop(self, event: Any, path: ValuePath, message: str) -> NoReturn:
        self._note(event, path, message)
        raise _Stop

    def _note_syntax(self, error: yaml.MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        lines = self._text.splitlines() or [""]
        line = min(line, len(lines) - 1)
        said = error.problem or "cannot be read"
        if lines[line].lstrip(" ").startswith("\t"):
            said = "the line is indented with a tab; YAML wants spaces"
        elif error.context:
            said = f"{said} {error.context}"
            start = error.context_mark
            if start is not None and start.line != line:
                said += f" that begins in line {start.line + 1}"
        message = f"is not YAML: {said} (column {column + 1})"
        self._problems.append(DefinitionProblem((), message, self._file, line + 1))


_NONE = object()  # no value of that kind


def plain_value(text: str) -> Any:
    """Return the value of an unquoted text."""
    if text in _NULLS:
        return None
    if text in _TRUTHS:
        return _TRUTHS[text]
    number = _integer(text)
    if number is _NONE:
        number = _float(text)
    return text if number is _NONE else number


def _integer(text: str) -> Any:
    if _INTEGER.fullmatch(text):
        return int(text)
    return int(text, 0) if _OTHER_BASE.fullmatch(text) else _NONE


def _float(text: str) -> Any:
    if not _FLOAT.fullmatch(text):
        return _NONE
    value = float(text)
    return value if abs(value) != float("inf") else _NONE


_BY_TAG: dict[str, Callable[[str], Any]] = {
    _CORE + "int": _integer,
    _CORE + "float": _float,
    _CORE + "bool": lambda text: _TRUTHS.get(text, _NONE),
    _CORE + "null": lambda text: None if text in _NULLS else _NONE,
}
