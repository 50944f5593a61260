"""Request bodies: JSON within limits, read only after the caller has shown the token."""

import asyncio
import json
import math
from typing import Any

from fastapi import Request
from fastapi._compat import ModelField
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from pydantic_core import from_json

from shoal.api.web.errors import (
    BodyNotJson,
    BodyTooLarge,
    FieldError,
    InvalidRequest,
    MalformedBody,
)
from shoal.core.errors import shortened
from shoal.core.untrusted import is_more

MAX_BODY_BYTES = 8 * 1024 * 1024  # 10,000 tasks of some 800 bytes
INLINE_BYTES = 64 * 1024
"""Larger bodies are parsed and validated in a thread, within the turns of large requests."""

MOST_MEMBERS = 20_000
"""Members of one object: twice the tasks of a definition, by whose names some objects go."""

MOST_VALUES = 1_000_000
"""Members and items of all objects and lists of a body."""

_INT64 = 2**63


class JsonRequest(Request):
    """A request whose JSON body has been read and checked by ``parse_json``."""

    most_bytes: int = MAX_BODY_BYTES
    _content: bytes = b""
    _value: Any = None

    async def read(self) -> None:
        """Read the body. Raises BodyTooLarge."""
        self._content = await self._read()

    async def parse_json(self) -> None:
        """Parse the body that was read. Raises NotJson, MalformedBody, InvalidRequest.

        The parser itself refuses more than 200 levels of nesting, NaN and Infinity.
        """
        if not self._content:
            return
        if not _is_json(self.headers.get("content-type", "")):
            raise BodyNotJson("send the body with the header 'Content-Type: application/json'")
        if self.is_large:
            self._value = await asyncio.to_thread(_parse, self._content)
        else:
            self._value = _parse(self._content)

    async def validate_large(self, field: ModelField) -> None:
        """Validate a large body as FastAPI would, but beside the event loop.

        Raises RequestValidationError. FastAPI takes the model that comes of it as it is.
        """
        if not self.is_large:
            return
        value, errors = await asyncio.to_thread(field.validate, self._value, {}, loc=("body",))
        if errors:
            raise RequestValidationError(errors, body=self._value)
        if isinstance(value, BaseModel):
            self._value = value

    @property
    def is_large(self) -> bool:
        """Whether work on the body that was read may take long."""
        return len(self._content) > INLINE_BYTES

    async def _read(self) -> bytes:
        length = self.headers.get("content-length", "")
        if is_more(length, self.most_bytes):
            raise _too_large(self.most_bytes)
        content = bytearray()
        async for chunk in self.stream():
            content += chunk
            if len(content) > self.most_bytes:
                raise _too_large(self.most_bytes)
        return bytes(content)

    async def body(self) -> bytes:
        """Return the body that ``read`` has read."""
        return self._content

    async def json(self) -> Any:
        """Return the value that ``parse_json`` has parsed."""
        return self._value


def _too_large(most_bytes: int) -> BodyTooLarge:
    # The connection stays open: closing it while the client still sends would lose the answer.
    return BodyTooLarge(f"a body may have at most {most_bytes} bytes")


def _is_json(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "application/json" or (
        media_type.startswith("application/") and media_type.endswith("+json")
    )


def _parse(content: bytes) -> Any:
    try:
        value = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise MalformedBody(f"the body is not JSON: {error}") from None
    _check_storable(value)
    _check_names(content)
    return value


def _check_names(content: bytes) -> None:
    """Refuse a name that stands twice in one object: which of the values was meant?"""
    try:
        json.loads(content, object_pairs_hook=_once, parse_int=_unread, parse_float=_unread)
    except RecursionError:  # the parser before has a lower limit
        raise MalformedBody("the body is nested too deep") from None


def _once(members: list[tuple[str, Any]]) -> None:
    names = set[str]()
    for name, _ in members:
        if name in names:
            shown = shortened(name, 100)
            raise InvalidRequest([FieldError(shown, "stands twice in the same object")])
        names.add(name)


def _unread(_: str) -> None:
    """Its value does not matter here."""


def _counted(values: int) -> int:
    if values > MOST_VALUES:
        said = f"the body has more than {MOST_VALUES:,} values; send it in several requests"
        raise InvalidRequest([FieldError("", said)])
    return values


def _check_storable(value: Any) -> None:
    """Refuse what is too much, and what not every database keeps: NUL, numbers beyond 64 bits."""
    waiting, values = [value], 0
    while waiting:
        match waiting.pop():
            case dict() as members:
                if len(members) > MOST_MEMBERS:
                    said = f"an object has {len(members):,} members, at most {MOST_MEMBERS:,} are"
                    raise InvalidRequest([FieldError("", f"{said} allowed")])
                values = _counted(values + len(members))
                waiting.extend(members)
                waiting.extend(members.values())
            case list() as items:
                values = _counted(values + len(items))
                waiting.extend(items)
            case str() as text if "\0" in text:
                raise InvalidRequest([FieldError("", "a text holds a NUL character")])
            case float() as number if not math.isfinite(number):
                raise InvalidRequest([FieldError("", "a number is too large")])
            case int() as number if not -_INT64 <= number < _INT64:
                raise InvalidRequest([FieldError("", "a whole number is beyond 64 bits")])
