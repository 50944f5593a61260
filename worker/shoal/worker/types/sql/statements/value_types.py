"""Parameters are texts; what is bound can have another type."""

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

from shoal.core.errors import shortened


class ValueType(StrEnum):
    """As what a parameter is bound."""

    TEXT = "text"
    INTEGER = "integer"
    FLOAT = "float"
    DECIMAL = "decimal"
    BOOLEAN = "boolean"  # true, false
    DATE = "date"  # 2026-01-31
    TIME = "time"  # 23:59:59
    TIMESTAMP = "timestamp"  # 2026-01-31 23:59:59, with Z or an offset if it has a zone


class NoValue(ValueError):
    """A text is not a value of its type."""


def typed(name: str, text: str, kind: ValueType) -> Any:
    """Return the value of a parameter as Python has it. Raises NoValue."""
    try:
        return _READ[kind](text.strip() if kind is not ValueType.TEXT else text)
    except (ValueError, KeyError, InvalidOperation):
        shown = shortened(repr(text), 100)
        raise NoValue(f"parameter {name}: {shown} is not a valid {kind}, as `types` says") from None


def _integer(text: str) -> int:
    if not text.isascii() or "_" in text:
        raise ValueError
    return int(text)


def _decimal(text: str) -> Decimal:
    value = Decimal(text)
    if not value.is_finite() or not text.isascii() or "_" in text:
        raise ValueError
    return value


def _float(text: str) -> float:
    return float(_decimal(text))


_READ: Mapping[ValueType, Callable[[str], Any]] = {
    ValueType.TEXT: str,
    ValueType.INTEGER: _integer,
    ValueType.FLOAT: _float,
    ValueType.DECIMAL: _decimal,
    ValueType.BOOLEAN: {"true": True, "false": False, "1": True, "0": False}.__getitem__,
    ValueType.DATE: date.fromisoformat,
    ValueType.TIME: time.fromisoformat,
    ValueType.TIMESTAMP: datetime.fromisoformat,
}
