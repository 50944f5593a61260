"""Operators and functions on small values: none takes long, none returns anything large.

Texts have at most MOST_TEXT characters, those that ``+`` and ``*`` make at most MOST_MADE; whole
numbers at most MOST_BITS bits, as many as the largest float. Lists are only ever spelled out, so
that none holds another one many times. With an expression's length that bounds time and memory
of its evaluation. What is larger raises ValueError, what has the wrong type TypeError.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

MOST_TEXT = 10_000
MOST_MADE = 1_000
MOST_BITS = 1_024

V = TypeVar("V")
_Function = Callable[..., Any]


def small(value: V) -> V:
    """Return ``value`` if it is small enough to work on. Raises ValueError."""
    if isinstance(value, str) and len(value) > MOST_TEXT:
        raise ValueError(f"a text of {len(value)} characters is too long; {MOST_TEXT} are allowed")
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise ValueError("a number has too many digits")
    return value


def _bounded(function: _Function) -> _Function:
    @wraps(function)
    def checked(*values: Any) -> Any:
        return small(function(*values))

    return checked


def _on_numbers(sign: str, function: _Function) -> _Function:
    """Return ``function`` for two numbers: of texts ``%`` would be formatting."""

    def checked(left: Any, right: Any) -> Any:
        for value in (left, right):
            if not isinstance(value, int | float):
                raise TypeError(f"{sign} works on numbers; write number(…) around {_kind(value)}")
        return small(function(left, right))

    return checked


def _plus(left: Any, right: Any) -> Any:
    if isinstance(left, str) and isinstance(right, str):
        _check_made(len(left) + len(right))
    return small(left + right)


def _times(left: Any, right: Any) -> Any:
    for text, count in ((left, right), (right, left)):
        if isinstance(text, str) and isinstance(count, int):
            _check_made(len(text) * max(0, small(count)))
            return text * count
    return _MULTIPLY(left, right)


_MULTIPLY = _on_numbers("*", operator.mul)


def _check_made(length: int) -> None:
    if length > MOST_MADE:
        raise ValueError(f"the text that it makes is too long; {MOST_MADE} characters are allowed")


def _number(value: Any) -> float | int:
    """Return ``value`` as a number: whole if it is written so."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a number")
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


def _contains(value: Any, part: Any) -> bool:
    return part in value


def _kind(value: object) -> str:
    return "a text" if isinstance(value, str) else "what is none"


OPERATORS: Mapping[type[ast.AST], _Function] = {
    ast.Add: _plus,
    ast.Sub: _bounded(operator.sub),
    ast.Mult: _times,
    ast.Div: _on_numbers("/", operator.truediv),
    ast.FloorDiv: _on_numbers("//", operator.floordiv),
    ast.Mod: _on_numbers("%", operator.mod),
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda part, value: part in value,
    ast.NotIn: lambda part, value: part not in value,
}

_UNBOUNDED: Mapping[str, _Function] = {
    "number": _number,
    "text": str,
    "length": len,
    "lower": lambda value: str(value).lower(),
    "upper": lambda value: str(value).upper(),
    "trim": lambda value: str(value).strip(),
    "starts_with": lambda value, prefix: str(value).startswith(prefix),
    "ends_with": lambda value, suffix: str(value).endswith(suffix),
    "contains": _contains,
    "min": min,
    "max": max,
}
FUNCTIONS: Mapping[str, _Function] = {
    name: _bounded(function) for name, function in _UNBOUNDED.items()
}
