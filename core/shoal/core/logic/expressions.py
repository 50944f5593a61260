"""The small expression language of SWITCH, evaluated by simpleeval: no attribute, no loop, no IO.

Names are parameters, as text. See ``docs/expressions.md``. A master evaluates them in its event
loop, so nothing may take long or become large: simpleeval only walks the tree, all operators and
functions are those of ``bounded``.
"""

import ast
from collections.abc import Mapping

from simpleeval import EvalWithCompoundTypes

from shoal.core.errors import ShoalError, shortened
from shoal.core.logic.bounded import FUNCTIONS, OPERATORS, small

LONGEST = 2_000  # characters
"""Longer expressions are refused: they belong into a task."""

_SHOWN, _LONGEST_REASON = 200, 700  # characters of an expression and of a reason in an error

_ALLOWED = (
    *OPERATORS,
    ast.Expression,
    ast.Expr,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.BinOp,
    ast.Compare,
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
        shown, why = shortened(repr(text), _SHOWN), shortened(reason, _LONGEST_REASON)
        super().__init__(f"expression {shown}: {why}")


_CONSTANTS = {"true": True, "false": False, "True": True, "False": False}


def check(text: str) -> None:
    """Raise InvalidExpression if ``text`` is none, whatever the parameters are."""
    _parse(text)


def names(text: str) -> set[str]:
    """Return the parameters that an expression uses. Raises InvalidExpression."""
    nodes = list(ast.walk(_parse(text)))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    found = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}
    return found - _CONSTANTS.keys() - FUNCTIONS.keys()


def is_true(text: str, parameters: Mapping[str, str]) -> bool:
    """Evaluate ``text``; the result must be true or false. Raises InvalidExpression.

    Only the parameters that ``text`` names are read.
    """
    tree = _parse(text)
    values = {name: parameters[name] for name in names(text) & parameters.keys()}
    try:
        used = {name: small(value) for name, value in values.items()}
        evaluator = EvalWithCompoundTypes(
            operators=dict(OPERATORS), functions=dict(FUNCTIONS), names={**_CONSTANTS, **used}
        )
        result = evaluator.eval(text, previously_parsed=tree.body)
    except RecursionError:
        raise InvalidExpression(text, "it is nested too deep") from None
    except Exception as error:  # noqa: BLE001 - whatever an expression does, only its task fails
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
        if isinstance(node, ast.Constant):
            _check_constant(text, node.value)
        if isinstance(node, ast.Call):
            _check_call(text, node)
    return tree


def _check_constant(text: str, value: object) -> None:
    if not isinstance(value, str | int | float | bool):
        raise InvalidExpression(text, f"{value!r} is not part of the language")
    try:
        small(value)
    except ValueError as error:
        raise InvalidExpression(text, str(error)) from None


def _check_call(text: str, node: ast.Call) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name not in FUNCTIONS:
        known = ", ".join(sorted(FUNCTIONS))
        raise InvalidExpression(text, f"unknown function {name or 'call'}; there are {known}")
    if node.keywords:
        raise InvalidExpression(text, f"{name} takes no named arguments")
