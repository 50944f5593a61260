"""The small expression language of SWITCH, evaluated by simpleeval: no attribute, no loop, no IO.

Names are parameters, as text. See ``docs/expressions.md``.
"""

import ast
from collections.abc import Callable, Mapping
from typing import Any

from simpleeval import DEFAULT_OPERATORS, EvalWithCompoundTypes
from simpleeval import InvalidExpression as _Invalid

from shoal.core.errors import ShoalError

LONGEST = 2_000  # characters
"""Longer expressions are refused: they belong into a task."""

_ALLOWED = (
    ast.Expression,
    ast.Expr,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.USub,
    ast.UAdd,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.Compare,
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.In,
    ast.NotIn,
    ast.IfExp,
    ast.Call,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.List,
    ast.Tuple,
)


class InvalidExpression(ShoalError, ValueError):
    """An expression that cannot be read, or not be evaluated with these parameters."""

    def __init__(self, text: str, reason: str) -> None:
        self.text = text
        super().__init__(f"expression {text!r}: {reason}")


def _number(value: Any) -> float | int:
    """Return ``value`` as a number: whole if it is written so."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is no number")
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "number": _number,
    "text": str,
    "length": len,
    "lower": lambda value: str(value).lower(),
    "upper": lambda value: str(value).upper(),
    "trim": lambda value: str(value).strip(),
    "starts_with": lambda value, prefix: str(value).startswith(prefix),
    "ends_with": lambda value, suffix: str(value).endswith(suffix),
    "contains": lambda value, part: part in value,
    "min": min,
    "max": max,
}
_CONSTANTS = {"true": True, "false": False, "True": True, "False": False}


def check(text: str) -> None:
    """Raise InvalidExpression if ``text`` is none, whatever the parameters are."""
    _parse(text)


def names(text: str) -> set[str]:
    """Return the parameters that an expression uses. Raises InvalidExpression."""
    nodes = list(ast.walk(_parse(text)))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    found = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}
    return found - _CONSTANTS.keys() - _FUNCTIONS.keys()


def is_true(text: str, parameters: Mapping[str, str]) -> bool:
    """Evaluate ``text``; the result must be true or false. Raises InvalidExpression."""
    _parse(text)
    evaluator = EvalWithCompoundTypes(
        operators=dict(DEFAULT_OPERATORS),
        functions=dict(_FUNCTIONS),
        names={**_CONSTANTS, **parameters},
    )
    try:
        result = evaluator.eval(text.strip())
    except RecursionError:
        raise InvalidExpression(text, "it is nested too deep") from None
    except (_Invalid, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise InvalidExpression(text, str(error) or type(error).__name__) from None
    if not isinstance(result, bool):
        reason = f"its value is {result!r}, not true or false; compare it with something"
        raise InvalidExpression(text, reason)
    return result


def _parse(text: str) -> ast.Expression:
    if len(text) > LONGEST:
        raise InvalidExpression(text[:50] + "…", f"it is longer than {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise InvalidExpression(text, f"{reason}; write something like day == 'x'") from None
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            what = type(node).__name__
            raise InvalidExpression(text, f"{what} is not part of the language")
        if isinstance(node, ast.Constant) and not isinstance(node.value, str | int | float | bool):
            raise InvalidExpression(text, f"{node.value!r} is not part of the language")
        if isinstance(node, ast.Call):
            _check_call(text, node)
    return tree


def _check_call(text: str, node: ast.Call) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name not in _FUNCTIONS:
        known = ", ".join(sorted(_FUNCTIONS))
        raise InvalidExpression(text, f"unknown function {name or 'call'}; there are {known}")
    if node.keywords:
        raise InvalidExpression(text, f"{name} takes no named arguments")
