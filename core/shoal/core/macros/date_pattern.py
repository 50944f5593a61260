"""Java date patterns, the part of them that dates and times of day need.

====== ======================= =========================================================
Letter Meaning                 Counts
====== ======================= =========================================================
``y``  year                    ``y`` as it is, ``yy`` two digits, ``yyyy`` four digits
``M``  month                   ``M`` ``MM`` number, ``MMM`` Aug, ``MMMM`` August
``d``  day of the month        ``d``, ``dd``
``H``  hour 0-23               ``H``, ``HH``
``m``  minute                  ``m``, ``mm``
``s``  second                  ``s``, ``ss``
``S``  fraction of the second  ``S`` to ``SSSSSSSSS``, that many digits (``SSS``: milliseconds)
``E``  weekday                 ``E`` ``EE`` ``EEE`` Sat, ``EEEE`` Saturday
====== ======================= =========================================================

Names are English whatever the locale. Text between single quotes is literal, ``''`` is a quote;
so is everything that is not an ASCII letter, except brackets. Other letters are refused, because
Java gives most of them a meaning.
"""

import re
from collections.abc import Callable
from datetime import datetime

from shoal.core.errors import ShoalError

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_PIECE = re.compile(r"([a-zA-Z])\1*|'(?:[^']|'')*'|[^a-zA-Z'\[\]]+")

Formatter = Callable[[datetime], str]

_LETTERS: dict[str, Formatter] = {
    "y": lambda t: str(t.year),
    "yy": lambda t: f"{t.year % 100:02}",
    "yyyy": lambda t: f"{t.year:04}",
    "M": lambda t: str(t.month),
    "MM": lambda t: f"{t.month:02}",
    "MMM": lambda t: _MONTHS[t.month - 1][:3],
    "MMMM": lambda t: _MONTHS[t.month - 1],
    "d": lambda t: str(t.day),
    "dd": lambda t: f"{t.day:02}",
    "H": lambda t: str(t.hour),
    "HH": lambda t: f"{t.hour:02}",
    "m": lambda t: str(t.minute),
    "mm": lambda t: f"{t.minute:02}",
    "s": lambda t: str(t.second),
    "ss": lambda t: f"{t.second:02}",
    "E": lambda t: _WEEKDAYS[t.weekday()][:3],
    "EE": lambda t: _WEEKDAYS[t.weekday()][:3],
    "EEE": lambda t: _WEEKDAYS[t.weekday()][:3],
    "EEEE": lambda t: _WEEKDAYS[t.weekday()],
}
_KNOWN = "y M d H m s S E"


class BadExpression(ShoalError, ValueError):
    """Part of a date expression that means nothing; ``offset`` counts from its start."""

    def __init__(self, offset: int, reason: str) -> None:
        self.offset, self.reason = offset, reason
        super().__init__(reason)


def compile_pattern(pattern: str, offset: int = 0) -> Formatter:
    """Return a function that formats a datetime by ``pattern``.

    ``offset`` is where the pattern starts in its expression, for BadExpression, which is raised
    if a letter is unknown, a quote is open, or nothing of the date would show.
    """
    pieces: list[Formatter] = []
    shows_date = False
    position = 0
    while position < len(pattern):
        found = _PIECE.match(pattern, position)
        if found is None:
            raise BadExpression(offset + position, _no_piece(pattern[position]))
        if found[1]:
            shows_date = True
            pieces.append(_letters(found[0], offset + position))
        else:
            pieces.append(_literal(_unquoted(found[0])))
        position = found.end()
    if not shows_date:
        reason = f"{pattern!r} shows nothing of the date; a pattern needs one of {_KNOWN}"
        raise BadExpression(offset, reason)
    return lambda moment: "".join(piece(moment) for piece in pieces)


def _no_piece(character: str) -> str:
    if character == "'":
        return "a quote is not closed"
    return f"{character!r} has no meaning here; write '{character}' for the text"


def _letters(run: str, offset: int) -> Formatter:
    if run in _LETTERS:
        return _LETTERS[run]
    letter, count = run[0], len(run)
    if letter == "S" and count <= 9:
        return lambda moment: f"{moment.microsecond * 1000:09}"[:count]
    if letter in _KNOWN:
        raise BadExpression(offset, f"{run!r} has too many or too few letters {letter!r}")
    reason = f"letter {letter!r} is not supported (known: {_KNOWN}); quote text like '{run}'"
    raise BadExpression(offset, reason)


def _unquoted(piece: str) -> str:
    if piece == "''":
        return "'"
    return piece[1:-1].replace("''", "'") if piece.startswith("'") else piece


def _literal(text: str) -> Formatter:
    return lambda _: text
