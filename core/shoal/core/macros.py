"""Placeholders in task definitions: ``${parameter}`` and ``$[date expression]``.

Two passes over a text: first ``${name}`` is replaced by the parameter's value, then ``$[…]`` by
the date it means (see ``date_expression`` for the forms).

- ``${a_${b}}``: names nest, the inner one first. A parameter nobody defined stays as it is, so a
  shell script keeps its own ``${HOME}``.
- A parameter's value is a definition like the text itself: it may hold ``${other}`` and ``$[…]``.
  What it renders to is inserted verbatim and never read again, so no value can join with the text
  around it to form a new placeholder. Parameters that define each other in a circle are refused.
- Values that are *data* (outputs of tasks, input of users) go through ``escape`` first; then they
  arrive character by character as they are.
- ``$${name}`` and ``$$[…]`` are the text ``${name}`` and ``$[…]``; any other ``$`` is itself.
- ``${system.biz.date}`` (day before the base, yyyyMMdd), ``${system.biz.curdate}`` (day of the
  base, yyyyMMdd) and ``${system.datetime}`` (base, yyyyMMddHHmmss) always come from the base; a
  parameter cannot redefine them.

A base without a time zone is a plain wall clock: everything but ``timestamp`` works.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime

from shoal.core.date_expression import compile_expression
from shoal.core.date_pattern import BadExpression
from shoal.core.macro_template import (
    Expression,
    InvalidMacro,
    Node,
    Parameter,
    parse,
    placeholders,
    static_text,
)

__all__ = ["BUILTINS", "InvalidMacro", "check", "escape", "names", "render"]

BUILTINS: Mapping[str, str] = {
    "system.biz.date": "last_day(yyyyMMdd)",
    "system.biz.curdate": "yyyyMMdd",
    "system.datetime": "yyyyMMddHHmmss",
}
"""Parameters that every text has, each with the date expression behind it."""

_DEEPEST_DEFINITION = 50
_LONGEST_RESULT = 16 * 2**20  # characters; a few definitions that double each other reach any size
_OPENING = re.compile(r"\$(?=[{\[])")


def render(text: str, *, base: datetime, parameters: Mapping[str, str]) -> str:
    """Return ``text`` with its placeholders replaced.

    ``base`` is the logical time of the run: dates are relative to it and in its time zone.
    Raises InvalidMacro for a bad date expression, a circle of parameters, or a result
    beyond 16 Mi characters.
    """
    return _Renderer(base, parameters).text(text, None)


def check(text: str) -> list[str]:
    """Return everything wrong with the date expressions of ``text``: position and reason.

    For the moment a workflow is saved. An expression that holds ``${…}`` is only known at run
    time; of that the structure alone is checked.
    """
    template = parse(text)
    problems = list(template.problems)
    structural = {problem.position for problem in problems}
    for node in placeholders(template.nodes):
        source = static_text(node.source) if isinstance(node, Expression) else None
        if source is not None and node.position not in structural:
            try:
                compile_expression(source)
            except BadExpression as error:
                problems.append(_located(text, node.position, source, error, None))
    return [str(problem) for problem in sorted(problems, key=lambda problem: problem.position)]


def names(text: str) -> set[str]:
    """Return the parameters that ``text`` refers to by a plain name, built-in ones included.

    A shell script's own ``${HOME}`` looks the same and is among them.
    """
    found = (
        static_text(node.name)
        for node in placeholders(parse(text).nodes)
        if isinstance(node, Parameter)
    )
    return {name for name in found if name is not None}


def escape(value: str) -> str:
    """Return the text that renders to exactly ``value``, whatever it holds."""
    return _OPENING.sub("$$", value)


def _located(
    text: str, position: int, source: str, error: BadExpression, parameter: str | None
) -> InvalidMacro:
    reason = f"$[{source}]: {error.reason}; write $$[ if it is not a date"
    return InvalidMacro(text, position + len("$[") + error.offset, reason, parameter=parameter)


class _Renderer:
    """Renders one text; every parameter is rendered at most once."""

    def __init__(self, base: datetime, parameters: Mapping[str, str]) -> None:
        self._base, self._parameters = base, parameters
        self._rendered: dict[str, str] = {}
        self._open: list[str] = []  # parameters whose values are being rendered, outermost first

    def text(self, text: str, parameter: str | None) -> str:
        if "$" not in text:
            return text
        template = parse(text)
        if template.problems:
            first = min(template.problems, key=lambda problem: problem.position)
            raise InvalidMacro(text, first.position, first.reason, parameter=parameter)
        return self._join(template.nodes, lambda node: self._placeholder(node, text, parameter))

    def _join(
        self, nodes: tuple[Node, ...], replace: Callable[[Parameter | Expression], str]
    ) -> str:
        parts: list[str] = []
        length = 0
        for node in nodes:
            part = node if isinstance(node, str) else replace(node)
            length += len(part)
            if length > _LONGEST_RESULT:
                reason = f"the result is longer than {_LONGEST_RESULT} characters"
                raise InvalidMacro("", 0, reason, parameter=self._open[-1] if self._open else None)
            parts.append(part)
        return "".join(parts)

    def _placeholder(self, node: Parameter | Expression, text: str, parameter: str | None) -> str:
        def replace(inner: Parameter | Expression) -> str:
            return self._placeholder(inner, text, parameter)

        if isinstance(node, Parameter):
            name = self._join(node.name, replace)
            return self._value(name, node.position, text, parameter)
        source = self._join(node.source, replace)
        try:
            return compile_expression(source)(self._base)
        except BadExpression as error:
            if static_text(node.source) is None:
                error.offset = 0  # positions inside the inserted values mean nothing outside
            raise _located(text, node.position, source, error, parameter) from None

    def _value(self, name: str, position: int, text: str, parameter: str | None) -> str:
        if name in self._rendered:
            return self._rendered[name]
        if name in BUILTINS:
            value = self._builtin(name, position, text, parameter)
        elif name in self._parameters:
            value = self._definition(name, position, text, parameter)
        else:
            return "${" + name + "}"
        self._rendered[name] = value
        return value

    def _builtin(self, name: str, position: int, text: str, parameter: str | None) -> str:
        try:
            return compile_expression(BUILTINS[name])(self._base)
        except BadExpression as error:
            raise InvalidMacro(text, position, error.reason, parameter=parameter) from None

    def _definition(self, name: str, position: int, text: str, parameter: str | None) -> str:
        if name in self._open:
            circle = " → ".join([*self._open[self._open.index(name) :], name])
            reason = f"parameters define each other in a circle: {circle}"
            raise InvalidMacro(text, position, reason, parameter=parameter)
        if len(self._open) == _DEEPEST_DEFINITION:
            reason = f"parameters refer to parameters more than {_DEEPEST_DEFINITION} deep"
            raise InvalidMacro(text, position, reason, parameter=parameter)
        self._open.append(name)
        value = self.text(self._parameters[name], name)
        self._open.pop()
        return value
