"""Placeholders in task definitions: ``${parameter}`` and ``$[date expression]``.

Two passes over a text: first ``${name}`` is replaced by the parameter's value, then ``$[…]`` by
the date it means (see ``date_expression`` for the forms).

- ``${a_${b}}``: names nest, the inner one first. An undefined parameter stays as it is, so a
  shell script keeps its own ``${HOME}``.
- A parameter's value is a definition like the text itself: it may hold ``${other}`` and ``$[…]``.
  What it renders to is inserted verbatim and never read again, so no value can join with the text
  around it to form a new placeholder. Parameters that define each other in a circle are refused.
- Values that are *data* (outputs of tasks, input of users) go through ``escape`` first; then they
  arrive character by character as they are.
- ``$[0]``, ``$[12]``: digits alone are a place in a list (JSON paths of SQL), not a date, and stay.
- ``$${name}`` and ``$$[…]`` are the text ``${name}`` and ``$[…]``; any other ``$`` is itself.
- ``${system.biz.date}`` (day before the base, yyyyMMdd), ``${system.biz.curdate}`` (day of the
  base, yyyyMMdd) and ``${system.datetime}`` (base, yyyyMMddHHmmss) always come from the base; a
  parameter cannot redefine them.
- A parameter may be defined on several levels; the innermost wins. A value that names its own
  parameter means the definition of the next level out: ``path: ${path}/today``.
- ``${secret.NAME}`` is a secret, where the caller has any to give. Its value is data.
- What the texts of one task may cost has a budget (``RENDER_STEPS``, ``RENDER_CHARACTERS``).

A base without a time zone is a plain wall clock: everything but ``timestamp`` works.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from shoal.core.errors import shortened
from shoal.core.hints import MOST_MISTAKES
from shoal.core.macros.date_expression import compile_expression
from shoal.core.macros.date_pattern import BadExpression
from shoal.core.macros.template import (
    Expression,
    InvalidMacro,
    Node,
    TemplateParameter,
    is_index,
    parse,
    placeholders,
    static_text,
)
from shoal.core.untrusted import Budget, OverBudget

__all__ = [
    "BUILTINS",
    "RENDER_CHARACTERS",
    "RENDER_STEPS",
    "SECRETS_PREFIX",
    "InvalidMacro",
    "Renderer",
    "check",
    "escape",
    "is_open",
    "names",
    "render",
    "secrets_named",
]

BUILTINS: Mapping[str, str] = {
    "system.biz.date": "last_day(yyyyMMdd)",
    "system.biz.curdate": "yyyyMMdd",
    "system.datetime": "yyyyMMddHHmmss",
}
"""Parameters that every text has, each with the date expression behind it."""

SECRETS_PREFIX = "secret."
RENDER_STEPS = 300_000
"""Steps for all texts of one task: some 0.4 s of processor time."""

RENDER_CHARACTERS = 16 * 2**20
"""Characters that all texts of one task make: definitions that double each other reach any size."""

_DEEPEST_DEFINITION = 50
_SHORT = 256  # characters of a result that costs no characters
_DATE_STEPS = 5  # of a date expression, and one more for every other character of it
_SHOWN = 200  # characters of a date expression in an error
_OPENING = re.compile(r"\$(?=[{\[])")


def render(text: str, *, base: datetime, parameters: Mapping[str, str]) -> str:
    """Return ``text`` with its placeholders replaced.

    ``base`` is the logical time of the run: dates are relative to it and in its time zone.
    Raises InvalidMacro for a bad date expression, a circle of parameters, or work beyond
    RENDER_STEPS and RENDER_CHARACTERS.
    """
    return Renderer(base, [parameters]).render(text)


def check(text: str) -> list[str]:
    """Return everything wrong with the date expressions of ``text``: position and reason.

    For the moment a workflow is saved. Of many mistakes only the first hundred. An expression that
    holds ``${…}`` is only known at run time; of that the structure alone is checked.
    """
    template = parse(text)
    problems = list(template.problems)
    structural = {problem.position for problem in problems}
    for node in placeholders(template.nodes):
        source = static_text(node.source) if isinstance(node, Expression) else None
        if source is None or is_index(source):
            continue
        if node.position not in structural:
            try:
                compile_expression(source)
            except BadExpression as error:
                problems.append(_located(text, node.position, source, error, None))
                if len(problems) >= MOST_MISTAKES:
                    break
    return [str(problem) for problem in sorted(problems, key=lambda problem: problem.position)]


def names(text: str) -> set[str]:
    """Return the parameters that ``text`` refers to by a plain name, built-in ones included.

    A shell script's own ``${HOME}`` looks the same and is among them.
    """
    found = (
        static_text(node.name)
        for node in placeholders(parse(text).nodes)
        if isinstance(node, TemplateParameter)
    )
    return {name for name in found if name is not None}


def secrets_named(text: str) -> set[str]:
    """Return the secrets that ``text`` refers to by a plain ``${secret.NAME}``."""
    if SECRETS_PREFIX not in text:
        return set()
    found = (name for name in names(text) if name.startswith(SECRETS_PREFIX))
    return {name.removeprefix(SECRETS_PREFIX) for name in found}


def is_open(text: str) -> bool:
    """Say whether a text may hold a placeholder: what it means is known when it is rendered."""
    return _OPENING.search(text) is not None


def escape(value: str) -> str:
    """Return the text that renders to exactly ``value``, whatever it holds."""
    return _OPENING.sub("$$", value)


def _located(
    text: str, position: int, source: str, error: BadExpression, parameter: str | None
) -> InvalidMacro:
    shown = shortened(source, _SHOWN)
    reason = f"$[{shown}]: {error.reason}; write $$[ if it is not a date"
    return InvalidMacro(text, position + len("$[") + error.offset, reason, parameter=parameter)


class Renderer:
    """Renders the texts of one task; every parameter is rendered at most once.

    ``levels`` hold definitions by name, the outermost level first. ``secret`` returns the value
    of a secret by its name, or raises; None: there are none, and ``${secret.x}`` is plain text.
    ``budget`` is for all texts together; renderers of one task share it.
    """

    def __init__(
        self,
        base: datetime,
        levels: Sequence[Mapping[str, str]],
        secret: Callable[[str], str] | None = None,
        budget: Budget | None = None,
    ) -> None:
        self._base, self._levels, self._secret = base, levels, secret
        self._budget = budget or Budget(RENDER_STEPS, RENDER_CHARACTERS)
        self._spent: dict[str, int] = {}  # steps, by the parameter whose value took them
        self._done: dict[_Definition, tuple[str, frozenset[str]]] = {}
        self._open: list[_Definition] = []  # whose values are being rendered, outermost first
        self._used: frozenset[str] = frozenset()  # secrets in what is being rendered

    def render(self, text: str) -> str:
        """Return ``text`` with its placeholders replaced. Raises as ``macros.render``."""
        return self.render_tracing(text)[0]

    def render_tracing(self, text: str) -> tuple[str, frozenset[str]]:
        """Return the rendered text, and the names of the secrets that went into it."""
        self._used, self._open = frozenset(), []
        return self._text(text, None), self._used

    def value(self, name: str) -> tuple[str, frozenset[str]]:
        """Return a parameter's value, and the secrets in it. Raises KeyError if there is none."""
        level = self._level_of(name, len(self._levels))
        if level is None:
            raise KeyError(name)
        self._used, self._open = frozenset(), []
        return self._definition((name, level), 0, ""), self._used

    def _text(self, text: str, of: "_Definition | None") -> str:
        if "$" not in text:
            return text
        template = parse(text, self._budget.steps)
        self._spend(template.marks)
        if template.problems:
            first = min(template.problems, key=lambda problem: problem.position)
            raise InvalidMacro(text, first.position, first.reason, parameter=of and of[0])
        return self._join(template.nodes, lambda node: self._placeholder(node, text, of))

    def _join(
        self, nodes: tuple[Node, ...], replace: Callable[[TemplateParameter | Expression], str]
    ) -> str:
        if len(nodes) == 1 and isinstance(only := nodes[0], str):
            return only
        parts: list[str] = []
        length = 0
        for node in nodes:
            part = node if isinstance(node, str) else replace(node)
            length += len(part)
            if length > self._budget.characters:
                break
            parts.append(part)
        if length > _SHORT:  # steps bound how many short ones there are
            self._spend(0, length)
        return "".join(parts)

    def _spend(self, steps: int, characters: int = 0) -> None:
        """Pay for work on the innermost open parameter, or on the text itself."""
        parameter = self._open[-1][0] if self._open else None
        if parameter is not None:
            self._spent[parameter] = self._spent.get(parameter, 0) + steps
        try:
            self._budget.spend(steps, characters)
        except OverBudget as error:
            # The parameter that took most is the cause, not the one that came last.
            if self._spent and self._budget.steps < 0:
                parameter = max(self._spent, key=self._spent.__getitem__)
            reason = f"{error}; use fewer placeholders, or pass large data as a resource or by URL"
            raise InvalidMacro("", 0, reason, parameter=parameter) from None

    def _placeholder(
        self, node: TemplateParameter | Expression, text: str, of: "_Definition | None"
    ) -> str:
        def replace(inner: TemplateParameter | Expression) -> str:
            return self._placeholder(inner, text, of)

        if isinstance(node, TemplateParameter):
            return self._value(self._join(node.name, replace), node.position, text, of)
        source = self._join(node.source, replace)
        if is_index(source):
            return f"$[{source}]"
        self._spend(_DATE_STEPS + len(source) // 2)
        try:
            return compile_expression(source)(self._base)
        except BadExpression as error:
            if static_text(node.source) is None:
                error.offset = 0  # positions inside the inserted values mean nothing outside
            raise _located(text, node.position, source, error, of and of[0]) from None

    def _value(self, name: str, position: int, text: str, of: "_Definition | None") -> str:
        if name in BUILTINS:
            try:
                return compile_expression(BUILTINS[name])(self._base)
            except BadExpression as error:
                raise InvalidMacro(text, position, error.reason, parameter=of and of[0]) from None
        if self._secret is not None and name.startswith(SECRETS_PREFIX):
            plain = name.removeprefix(SECRETS_PREFIX)
            value = self._secret(plain)
            if plain not in self._used:
                self._spend(1 + len(self._used) // 16)
                self._used |= {plain}
            return value
        if of is not None and of[0] == name:
            # Without an outer level it is itself, and reported as a circle.
            outer = self._level_of(name, of[1])
            return self._definition((name, of[1] if outer is None else outer), position, text)
        level = self._level_of(name, len(self._levels))
        if level is None:
            return "${" + name + "}"
        return self._definition((name, level), position, text)

    def _level_of(self, name: str, below: int) -> int | None:
        """Return the innermost level outside of ``below`` that has the name."""
        return next((i for i in range(below - 1, -1, -1) if name in self._levels[i]), None)

    def _definition(self, wanted: "_Definition", position: int, text: str) -> str:
        if wanted not in self._done:
            self._done[wanted] = self._rendered(wanted, position, text)
        value, used = self._done[wanted]
        if used:
            self._spend(1 + (len(used) + len(self._used)) // 16)
            self._used |= used
        return value

    def _rendered(
        self, wanted: "_Definition", position: int, text: str
    ) -> tuple[str, frozenset[str]]:
        name, level = wanted
        parameter = self._open[-1][0] if self._open else None
        if wanted in self._open:
            round_trip = [n for n, _ in self._open[self._open.index(wanted) :]]
            circle = " → ".join([*round_trip, name])
            reason = f"parameters define each other in a circle: {circle}"
            raise InvalidMacro(text, position, reason, parameter=parameter)
        if len(self._open) == _DEEPEST_DEFINITION:
            reason = f"parameters refer to parameters more than {_DEEPEST_DEFINITION} deep"
            raise InvalidMacro(text, position, reason, parameter=parameter)
        outside, self._used = self._used, frozenset()
        self._open.append(wanted)
        value = self._text(self._levels[level][name], wanted)
        self._open.pop()
        used, self._used = self._used, outside
        return value, used


_Definition = tuple[str, int]  # a parameter's name, and the level that defines it
