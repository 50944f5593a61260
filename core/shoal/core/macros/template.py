"""Find ``${name}`` and ``$[expression]`` in a text, in one pass and linear time.

``$[0]`` and other digits are plain text: the path of a JSON value in SQL.
``$${`` and ``$$[`` stand for the two characters ``${`` and ``$[``. A ``${`` that is never closed
is plain text, as in a shell script; a ``$[`` that is never closed is a problem. A ``]`` between
single quotes does not close an expression. A text with MOST_MISTAKES problems or more than
MOST_MARKS marks is not read further.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from shoal.core.errors import ShoalError
from shoal.core.hints import MOST_MISTAKES

_OPENING = re.compile(r"\$\$[{\[]|\$[{\[]")
_MARK = re.compile(_OPENING.pattern + r"|[}\]']")
_DEEPEST = 32  # closed placeholders inside each other
MOST_MARKS = 150_000
"""Marks of one text: ``${``, ``$[``, and inside of these quotes and closing brackets."""

_TOO_MUCH = "pass large data as a resource or by URL"
_MOST_DOLLARS = 20 * MOST_MARKS  # each one, alone or not, makes the search stop


class InvalidMacro(ShoalError, ValueError):
    """A placeholder that means nothing.

    ``position`` counts characters of the text from 0, ``line`` and ``column`` from 1;
    ``parameter`` names the parameter whose value is that text, None for the text itself.
    """

    def __init__(
        self, text: str, position: int, reason: str, *, parameter: str | None = None
    ) -> None:
        self.position, self.reason, self.parameter = position, reason, parameter
        self.line = text.count("\n", 0, position) + 1
        self.column = position - text.rfind("\n", 0, position)
        where = "" if parameter is None else f"value of parameter {parameter!r}, "
        super().__init__(f"{where}line {self.line}, column {self.column}: {reason}")


@dataclass(frozen=True, slots=True)
class TemplateParameter:
    """``${…}``; the name itself may hold placeholders."""

    position: int
    name: tuple["Node", ...]
    depth: int


@dataclass(frozen=True, slots=True)
class Expression:
    """``$[…]``; the source may hold ``${…}``."""

    position: int
    source: tuple["Node", ...]
    depth: int


Node = str | TemplateParameter | Expression


@dataclass(frozen=True, slots=True)
class Template:
    """A text taken apart, with everything wrong about its structure.

    ``marks`` is how many of them were read: what it cost.
    """

    nodes: tuple[Node, ...]
    problems: tuple[InvalidMacro, ...]
    marks: int


@dataclass(slots=True)
class _Frame:
    """One ``${`` or ``$[`` that is still open; ``mark`` is empty for the text itself."""

    mark: str
    position: int
    nodes: list[Node] = field(default_factory=list)
    depth: int = 0
    quoted: bool = False


@lru_cache(maxsize=256)
def _parse_small(text: str) -> Template:
    return _Scanner(text).scan()


def parse(text: str, most: int = MOST_MARKS) -> Template:
    """Take ``text`` apart. Raises nothing: see ``Template.problems``.

    ``most``: marks that are read. More of them are a problem, and then ``Template.marks`` is
    larger than ``most``.
    """
    # Task scripts repeat from run to run; megabytes of data do not belong in memory.
    if len(text) <= 4_096:
        return _parse_small(text)
    return _Scanner(text, min(most, MOST_MARKS)).scan()


def is_index(source: str) -> bool:
    """Return whether ``$[source]`` is a place in a list, as in SQL's JSON paths, and no date."""
    return source.isascii() and source.isdigit()


def static_text(nodes: tuple[Node, ...]) -> str | None:
    """Return the text of ``nodes`` if it holds no placeholder, else None."""
    if all(isinstance(node, str) for node in nodes):
        return "".join(str(node) for node in nodes)
    return None


def placeholders(nodes: tuple[Node, ...]) -> Iterator[TemplateParameter | Expression]:
    """Yield every placeholder, the outer one before those inside it."""
    for node in nodes:
        if isinstance(node, TemplateParameter):
            yield node
            yield from placeholders(node.name)
        elif isinstance(node, Expression):
            yield node
            yield from placeholders(node.source)


class _Scanner:
    def __init__(self, text: str, most: int = MOST_MARKS) -> None:
        self._text, self._most = text, most
        self._stack = [_Frame("", 0)]
        self._problems: list[InvalidMacro] = []

    def scan(self) -> Template:
        done = marks = 0
        if self._text.count("$") > _MOST_DOLLARS:
            self._problem(0, f"more than {_MOST_DOLLARS:,} dollar signs; {_TOO_MUCH}")
            return Template((), tuple(self._problems), marks)
        # Outside every placeholder the closing marks, frequent in JSON and shell, mean nothing.
        while mark := (_MARK if len(self._stack) > 1 else _OPENING).search(self._text, done):
            if mark.start() > done:
                self._stack[-1].nodes.append(self._text[done : mark.start()])
            self._take(mark[0], mark.start())
            done = mark.end()
            if len(self._problems) >= MOST_MISTAKES:
                break
            if (marks := marks + 1) > self._most:
                reason = f"more than {self._most:,} placeholders and marks in one text; {_TOO_MUCH}"
                self._problem(mark.start(), reason)
                break
        if done < len(self._text):
            self._stack[-1].nodes.append(self._text[done:])
        return Template(tuple(self._close_rest()), tuple(self._problems), marks)

    def _take(self, mark: str, position: int) -> None:
        top = self._stack[-1]
        if mark in ("${", "$["):
            self._stack.append(_Frame(mark, position))
        elif mark == "}" and top.mark == "${":
            self._close(TemplateParameter(top.position, tuple(top.nodes), top.depth + 1))
        elif mark == "]" and top.mark == "$[" and not top.quoted:
            self._close(Expression(top.position, tuple(top.nodes), top.depth + 1))
        else:
            if mark == "'" and top.mark == "$[":
                top.quoted = not top.quoted
            top.nodes.append(mark[1:] if mark.startswith("$$") else mark)

    def _close(self, node: TemplateParameter | Expression) -> None:
        self._stack.pop()
        if node.depth > _DEEPEST:
            reason = f"placeholders are nested more than {_DEEPEST} deep"
            self._problem(node.position, reason)
            return
        if isinstance(node, Expression) and any(isinstance(n, Expression) for n in node.source):
            reason = "$[…] cannot stand inside $[…]; write one expression"
            self._problem(node.position, reason)
        self._stack[-1].nodes.append(node)
        self._stack[-1].depth = max(self._stack[-1].depth, node.depth)

    def _close_rest(self) -> list[Node]:
        """Return the whole text's nodes, every ``${`` that stayed open being plain text."""
        nodes: list[Node] = []
        unclosed = False
        for frame in self._stack:
            if frame.mark == "$[" and not unclosed:
                unclosed = True  # what follows is inside it: one problem, not many
                quote = "a quote inside it is not closed" if frame.quoted else "its ] is missing"
                self._problem(frame.position, f"$[ is not closed ({quote}); write $$[ for the text")
            if frame.mark:
                nodes.append(frame.mark)
            nodes.extend(frame.nodes)
        return nodes

    def _problem(self, position: int, reason: str) -> None:
        self._problems.append(InvalidMacro(self._text, position, reason))
