"""Values that others have written, read within bounds.

Outputs of tasks, files of programs and answers of servers hold anything. Python's own readers
answer some of it with another error than ValueError (RecursionError for JSON of many levels), or
with values that fail later (a number of 5,000 digits cannot become text again, a lone surrogate
cannot be encoded). Code that reads such a value calls these functions instead.

Placeholders and message templates are small programs that users write. Shared processes run them,
so each run has a ``Budget``: the code spends steps for its work and stops when none are left.
Steps are counted, not timed. The same text gets the same verdict on every machine and under any
load. One step is one or two microseconds of processor time.
"""

import json
import math
import re
from typing import Any, NoReturn

from shoal.core.errors import ShoalError

MOST_CHARACTERS = 16 << 20
"""Characters, or bytes, of a JSON text that is read."""

MOST_LEVELS = 100
"""Lists and objects inside one another."""

MOST_DIGITS = 15
"""Digits of a count: each such number is exact as a float as well."""


class NotJson(ValueError):
    """A text that is not JSON, or more of it than is read."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is too large")
    return number


_STRICT = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # the escape of half a character


def read_json(
    text: str | bytes,
    most: int = MOST_CHARACTERS,
    levels: int | None = MOST_LEVELS,
    *,
    is_strict: bool = False,
) -> Any:
    """Return the JSON value of a text. Raises NotJson.

    ``most``: characters or bytes. ``levels``: None, for values whose levels were limited before
    they were stored, allows as many as Python can read. ``is_strict``: for values that are written
    again as JSON or as UTF-8. NaN, Infinity, numbers beyond a float and lone surrogates are
    refused; otherwise they are read as Python reads them.
    """
    if len(text) > most:
        raise NotJson(f"it has {len(text):,} characters, at most {most:,} are read")
    try:
        if is_strict:
            if isinstance(text, bytes):
                text = text.decode(json.detect_encoding(text))
            elif not text.isascii():
                text.encode()
            value = _STRICT.decode(text)
        else:
            value = json.loads(text)
    except RecursionError:
        raise NotJson(
            "it has too many levels" if levels is None else f"it has more than {levels} levels"
        ) from None
    except ValueError as error:  # of JSON, of UTF-8, or a number of too many digits
        raise NotJson(str(error)) from None
    if levels is not None:
        if isinstance(text, bytes):
            brackets = text.count(b"[") + text.count(b"{")
        else:
            brackets = text.count("[") + text.count("{")
        if brackets > levels and _levels(value) > levels:
            raise NotJson(f"it has more than {levels} levels")
    may_be_half = is_strict and isinstance(text, str) and _SURROGATE.search(text) is not None
    if may_be_half and not is_text(json.dumps(value, ensure_ascii=False)):
        raise NotJson("it holds half a character (a lone surrogate)")
    return value


def is_text(value: object) -> bool:
    """Say whether a value is a text that UTF-8 can encode: without half a character."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _levels(value: Any) -> int:
    """Return how deep a value is, without recursion."""
    count, level = 0, [value]
    while level := [one for one in level if isinstance(one, dict | list)]:
        count += 1
        level = [each for one in level for each in (one.values() if isinstance(one, dict) else one)]
    return count


def read_count(text: str) -> int | None:
    """Return the whole number from 0 on that a text of ASCII digits is; None if it is not one.

    A number of more than ``MOST_DIGITS`` digits is not a count.
    """
    digits = text.lstrip("0") if len(text) > MOST_DIGITS else text
    if not (text.isascii() and text.isdecimal()) or len(digits) > MOST_DIGITS:
        return None
    return int(digits or "0")


def is_more(text: str, most: int) -> bool:
    """Say whether a text is a whole number above ``most``, of however many digits."""
    if not (text.isascii() and text.isdecimal()):
        return False
    count = read_count(text)
    return count is None or count > most


def encodable(text: str) -> str:
    """Return ``text`` with NUL and lone surrogates replaced by U+FFFD.

    No UTF-8 text and no database can hold them; both reach us in the output of programs that
    failed.
    """
    text = text.replace("\0", "\ufffd")
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class OverBudget(ShoalError, ValueError):
    """Work on a text of a user that would cost more than its budget."""


class Budget:
    """Steps and characters that one piece of work may use. For one thread.

    ``steps`` counts operations, ``characters`` the length of everything that is built. What is
    spent counts for the budget ``within`` as well: that of several pieces of work together.
    """

    __slots__ = ("_characters", "_steps", "_within", "characters", "steps")

    def __init__(self, steps: int, characters: int, within: "Budget | None" = None) -> None:
        self._steps, self._characters, self._within = steps, characters, within
        self.steps, self.characters = steps, characters  # that are left
        if within is not None:
            self.steps = min(steps, max(0, within.steps))

    def spend(self, steps: int, characters: int = 0) -> None:
        """Take from what is left. Raises OverBudget."""
        if self._within is not None:
            self._within.spend(steps, characters)
        self.steps -= steps
        self.characters -= characters
        if self.steps < 0:
            raise OverBudget(f"it takes more than {self._steps:,} steps")
        if self.characters < 0:
            raise OverBudget(f"the result is longer than {self._characters:,} characters")
