"""Values as literals, for a server that takes no values beside the text of a statement.

What could end a literal, or mean something inside of one, never stands there: such a text is
written as the hexadecimal digits of its bytes.
"""

import re
from collections.abc import Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

# No statement holds this character, so nothing else can be taken for a placeholder.
_MARK = "\0"
_PLACEHOLDER = re.compile(f"{_MARK}([0-9]+){_MARK}")
# Neither quotes nor backslashes, nor what opens a variable of the server's.
_HARMLESS = re.compile(r"[^\x00-\x1f'\"\\$`{}]*")


def placeholder(number: int) -> str:
    """Return what stands for a value in a statement."""
    return f"{_MARK}{number}{_MARK}"


def filled(statement: str, values: Sequence[Any]) -> str:
    """Return a statement with its values as literals of Hive and Spark."""
    return _PLACEHOLDER.sub(lambda found: literal(values[int(found[1])]), statement)


def literal(value: Any) -> str:
    """Return a value as a literal."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return _number(str(value), "DECIMAL(38,0)" if abs(value) >= 1 << 63 else "")
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case Decimal():
            return _decimal(value)
        case datetime():
            return f"CAST('{value.isoformat(sep=' ')}' AS TIMESTAMP)"
        case date():
            return f"CAST('{value.isoformat()}' AS DATE)"
        case time():
            return f"'{value.isoformat()}'"
        case _:
            return _text(str(value))


def _number(text: str, as_type: str) -> str:
    if as_type:
        return f"CAST('{text}' AS {as_type})"
    return f"({text})" if text.startswith("-") else text  # two dashes would open a comment


def _decimal(value: Decimal) -> str:
    text = f"{value:f}"
    digits = text.lstrip("-").replace(".", "").lstrip("0")
    scale = len(text.partition(".")[2])
    precision = max(len(digits), scale, 1)
    return f"CAST('{text}' AS DECIMAL({precision},{scale}))"


def _text(value: str) -> str:
    if _HARMLESS.fullmatch(value):
        return f"'{value}'"
    return f"decode(unhex('{value.encode('utf-8').hex()}'), 'UTF-8')"
