"""The little arithmetic inside date expressions: integers, ``+ - * /``, signs, parentheses.

Ordinary rules: ``*`` and ``/`` bind tighter, equals go from left to right (``-1+2`` is 1).
Fractions stay exact until the end and are then cut towards zero.
"""

from dataclasses import dataclass
from fractions import Fraction

from shoal.core.macros.date_pattern import BadExpression

SECONDS_PER_DAY = 86_400
_DEEPEST = 20  # parentheses inside each other
_LONGEST_NUMBER = 9  # digits


@dataclass(frozen=True, slots=True)
class Term:
    """One summand; ``divided`` says whether a ``/`` occurs in it."""

    value: Fraction
    divided: bool


def count(text: str, offset: int) -> int:
    """Return the value of ``text``, cut towards zero. Raises BadExpression."""
    return int(sum((term.value for term in _Parser(text, offset).whole()), Fraction()))


def days_and_seconds(text: str, offset: int) -> tuple[int, int]:
    """Return an offset as calendar days plus seconds.

    Terms without ``/`` are days (``7*2``); terms with ``/`` are parts of a 24-hour day:
    ``N/24`` hours, ``N/24/60`` minutes, ``N/24/60/60`` seconds, cut to whole seconds.
    """
    terms = _Parser(text, offset, refuse_leading_zero=True).whole()
    days = sum((term.value for term in terms if not term.divided), Fraction())
    parts = sum((term.value for term in terms if term.divided), Fraction())
    return int(days), int(parts * SECONDS_PER_DAY)


class _Parser:
    def __init__(self, text: str, offset: int, *, refuse_leading_zero: bool = False) -> None:
        self._text, self._offset = text, offset
        self._refuse_leading_zero = refuse_leading_zero
        self._position = 0

    def whole(self) -> list[Term]:
        terms = self._sum(0)
        if self._position < len(self._text):
            raise self._error(f"{self._text[self._position]!r} is not expected here")
        return terms

    def _sum(self, depth: int) -> list[Term]:
        terms = [self._product(depth)]
        while operator := self._take("+-"):
            term = self._product(depth)
            terms.append(Term(-term.value if operator == "-" else term.value, term.divided))
        return terms

    def _product(self, depth: int) -> Term:
        result = self._factor(depth)
        while operator := self._take("*/"):
            factor = self._factor(depth)
            if operator == "*":
                result = Term(result.value * factor.value, result.divided or factor.divided)
            elif factor.value == 0:
                raise self._error("division by zero")
            else:
                result = Term(result.value / factor.value, divided=True)
        return result

    def _factor(self, depth: int) -> Term:
        sign = 1
        while operator := self._take("+-"):
            sign = -sign if operator == "-" else sign
        if not self._take("("):
            return Term(Fraction(sign * self._number()), divided=False)
        if depth == _DEEPEST:
            raise self._error(f"parentheses are nested more than {_DEEPEST} deep")
        terms = self._sum(depth + 1)
        if not self._take(")"):
            raise self._error("a ) is missing")
        value = sign * sum((term.value for term in terms), Fraction())
        return Term(value, any(term.divided for term in terms))

    def _number(self) -> int:
        self._skip_spaces()
        start = self._position
        while self._position < len(self._text) and self._text[self._position] in "0123456789":
            self._position += 1
        digits = self._text[start : self._position]
        if not digits:
            raise self._error("a number is missing")
        if len(digits) > _LONGEST_NUMBER:
            raise self._error(f"a number has more than {_LONGEST_NUMBER} digits")
        if self._refuse_leading_zero and len(digits) > 1 and digits[0] == "0":
            reason = f"{digits!r} reads as an offset; write '{digits}' in quotes for the text"
            raise self._error(reason)
        return int(digits)

    def _take(self, characters: str) -> str:
        self._skip_spaces()
        if self._position < len(self._text) and self._text[self._position] in characters:
            self._position += 1
            return self._text[self._position - 1]
        return ""

    def _skip_spaces(self) -> None:
        while self._position < len(self._text) and self._text[self._position] == " ":
            self._position += 1

    def _error(self, reason: str) -> BadExpression:
        return BadExpression(self._offset + self._position, reason)
