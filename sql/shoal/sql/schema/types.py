"""Column types that behave the same on every database."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import BigInteger, Dialect, Integer, String, Text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.types import TypeDecorator, TypeEngine

from shoal.core.untrusted import encodable, read_json

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
# ``json.dumps`` would make an encoder for each value, which takes longer than most values do.
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode
# Sizes and levels are limited where values are accepted. A limit here would make rows unreadable.
_MOST_CHARACTERS = 1 << 30


class UnreadableValue:
    """Stands for a value that could not be decoded, so that the other rows can be read.

    ``made`` says whether there has been one since the process began: see ``statements/rows.py``.
    """

    made = False

    def __init__(self, error: Exception) -> None:
        self.reason = str(error)
        UnreadableValue.made = True


# SQLite gives out row ids by itself only for a column of exactly this type.
Id = BigInteger().with_variant(Integer(), "sqlite")


class _Stored(TypeDecorator[T]):
    """A type whose values are stored as ``process_bind_param`` returns them.

    SQLAlchemy calls that from a function in a function; each task has some twenty values, so they
    go there directly.
    """

    impl: type[TypeEngine[Any]] = Text
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        if self.impl_instance.bind_processor(dialect) is not None:
            return super().bind_processor(dialect)
        return partial(self.process_bind_param, dialect=dialect)


class UtcDateTime(_Stored[datetime]):
    """An instant with microseconds: aware in, aware UTC out.

    PostgreSQL: ``timestamptz``. Elsewhere microseconds since 1970 as an integer, so that
    comparing, sorting and indices are exact.
    """

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        return dialect.type_descriptor(BigInteger())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.utcoffset() is None:
            raise ValueError(f"{value!r} has no time zone; pass an aware datetime")
        if dialect.name == "postgresql":
            return value.astimezone(UTC)
        return (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        if value is None:
            return None
        try:
            if isinstance(value, datetime):
                return value.astimezone(UTC)
            if isinstance(value, str):
                raise ValueError(f"{value:.50} is not a time of the years 1 to 9999")
            return _EPOCH + timedelta(microseconds=value)
        except (TypeError, ValueError, OverflowError) as error:
            return UnreadableValue(error)


class OneLine(_Stored[str]):
    """Text of at most ``length`` characters, for names and keys."""

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else encodable(value)


class Prose(_Stored[str]):
    """Text of any length, for people."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else encodable(value)


class JsonText(str):
    """The text of a JSON value, to be stored as it is: it was too long to be made here."""


class Json(_Stored[Any]):
    """JSON values as text: no database's own JSON rules come into play. None is NULL.

    ``kind``: what a value has to be, ``dict`` or ``list``. ``texts``: its values have to be texts.
    NaN, infinite numbers and lone surrogates make a value unreadable: no answer of the API and no
    other row can hold them, so they would spoil the answer that the value becomes part of.
    """

    impl = Text
    cache_ok = True

    def __init__(self, kind: type[dict[str, Any]] | type[list[Any]], *, texts: bool = False):
        super().__init__()
        self.kind, self.texts = kind, texts

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        if value is None:
            return None
        return encodable(value if isinstance(value, JsonText) else _ENCODE(value))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        try:
            found = read_json(value, _MOST_CHARACTERS, levels=None, is_strict=True)
        except (TypeError, ValueError) as error:
            return UnreadableValue(error)
        if not isinstance(found, self.kind):
            name = "an object" if self.kind is dict else "a list"
            return UnreadableValue(ValueError(f"{value:.50} is not {name}"))
        if self.texts and not all(isinstance(each, str) for each in _values(found)):
            return UnreadableValue(ValueError(f"{value:.50} holds values that are not texts"))
        return found


def _values(found: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return found.values() if isinstance(found, dict) else found
