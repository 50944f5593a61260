"""The values that databases return, as text and as JSON: the same for every database.

Whole numbers, floats and truth values are those of JSON; other decimals are texts, as exact as the
database gave them. Dates and times are texts in ISO 8601, bytes in hexadecimal, an interval is its
text. NULL is null; as the value of an output the empty text.
"""

import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

_LARGEST = 2**53  # beyond it readers of JSON lose digits


def as_json(value: Any) -> Json:
    """Return a value as JSON has it."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if -_LARGEST <= value <= _LARGEST else str(value)
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal() if value.is_finite() and value == value.to_integral_value():
            is_whole = value.as_tuple().exponent == 0
            return as_json(int(value)) if is_whole else str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return bytes(value).hex()
        case Mapping():
            return {str(key): as_json(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [as_json(item) for item in value]
        case _:
            return str(value)


def as_text(value: Any) -> str:
    """Return a value as an output or a cell of CSV has it; NULL is empty."""
    if isinstance(value, str):
        return value
    plain = as_json(value)
    if plain is None:
        return ""
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
