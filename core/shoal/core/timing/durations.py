"""Lengths of time as people write them: ``30s``, ``10m``, ``1h30m``, ``2d``, ``500ms``."""

import math
import re

from shoal.core.errors import ShoalError

_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_ORDER = list(_SECONDS)
_PART = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(ms|[dhms])[ ]?")
_PLAIN = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_LONGEST_TEXT = 80  # characters; five parts at full precision fit


class InvalidDuration(ShoalError, ValueError):
    """A text or number that is not a length of time."""

    def __init__(self, value: object, reason: str) -> None:
        self.value = value
        super().__init__(
            f"duration {value!r}: {reason}; write a number of seconds, "
            "or parts from large to small such as 2d, 1h30m, 10m, 30s, 500ms"
        )


def parse_duration(value: str | int | float) -> float:
    """Return ``value`` in seconds. A plain number, also as text, already is in seconds.

    Units are ``d h m s ms``, each at most once, from large to small, with optional decimals
    (``1.5h``). Raises InvalidDuration for everything else, negative and endless ones included.
    """
    if isinstance(value, str):
        return _parse_text(value)
    if isinstance(value, bool):
        raise InvalidDuration(value, "a truth value is not a length of time")
    if not math.isfinite(value):
        raise InvalidDuration(value, "it has no end")
    if value < 0:
        raise InvalidDuration(value, "it is negative")
    return float(value)


def _parse_text(value: str) -> float:
    text = value.strip()
    if not text:
        raise InvalidDuration(value, "it is empty")
    if len(text) > _LONGEST_TEXT:
        raise InvalidDuration(value[:_LONGEST_TEXT], "it is too long")
    if _PLAIN.fullmatch(text):
        return float(text)
    seconds, position, last = 0.0, 0, -1
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise InvalidDuration(value, f"{text[position:]!r} is not a number with a unit")
        rank = _ORDER.index(part[2])
        if rank <= last:
            raise InvalidDuration(value, f"{part[2]!r} comes twice or after a smaller unit")
        seconds += float(part[1]) * _SECONDS[part[2]]
        position, last = part.end(), rank
    return seconds


def format_duration(seconds: float) -> str:
    """Return ``seconds`` for people: ``250ms``, ``3.2s``, ``1m 05s``, ``2h 03m``, ``1d 04h``.

    Two units at most, rounded to the smaller one.
    """
    if not math.isfinite(seconds):
        raise InvalidDuration(seconds, "it has no end")
    sign, length = ("-", -seconds) if seconds < 0 else ("", seconds)
    return sign + _format(length)


def _format(length: float) -> str:
    if length == 0:
        return "0s"
    if (milliseconds := round(length * 1000)) < 1000:
        return f"{milliseconds}ms"
    if (tenths := round(length * 10)) < 600:
        return f"{tenths // 10}.{tenths % 10}s"
    if (whole := round(length)) < 3_600:
        return f"{whole // 60}m {whole % 60:02}s"
    if (minutes := round(length / 60)) < 24 * 60:
        return f"{minutes // 60}h {minutes % 60:02}m"
    hours = round(length / 3_600)
    return f"{hours // 24}d {hours % 24:02}h"
