"""Lists in pages: a limit, and an opaque cursor that continues behind the last item."""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

from fastapi import Query

from shoal.api.web.errors import FieldError, InvalidRequest
from shoal.core.untrusted import read_json

T = TypeVar("T")

MOST_ITEMS = 500  # of a page: what one answer makes of rows in one go
MAX_ID = 2**63 - 1

Limit = Annotated[
    int, Query(ge=1, le=MOST_ITEMS, description="How many items to return, at most.", examples=[50])
]
Cursor = Annotated[
    str | None,
    Query(
        max_length=1000,
        json_schema_extra={"pattern": "^[A-Za-z0-9_-]+$"},
        description="`next` of the page before; without it the first page.",
    ),
]


def filtered(kind: str, *filters: object) -> str:
    """Return the kind of a list with these filters: its cursors belong to no other one."""
    text = json.dumps([kind, *filters], default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def encode_cursor(kind: str, *position: str | int) -> str:
    """Return the text of a position in the list ``kind``."""
    content = json.dumps([kind, *position], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def decode_cursor(kind: str, cursor: str | None, *types: type) -> tuple[Any, ...] | None:
    """Return the position in ``cursor``; None without one. Raises InvalidRequest.

    Cursors come back from outside, so everything about them is checked.
    """
    if cursor is None:
        return None
    content = _content(cursor)
    if (
        not isinstance(content, list)
        or content[:1] != [kind]
        or [type(part) for part in content[1:]] != list(types)
        or any(isinstance(part, int) and not 0 <= part <= MAX_ID for part in content[1:])
    ):
        raise bad_cursor()
    return tuple(content[1:])


def _content(cursor: str) -> Any:
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return read_json(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        return None


def part_of(
    kind: str,
    items: Iterable[T],
    key: Callable[[T], str | int],
    limit: int,
    cursor: str | None,
    *,
    falling: bool = False,
) -> tuple[list[T], str | None]:
    """Return a page of what is read as a whole, since it is never much, and the next cursor.

    ``items`` come in the order of ``key``, which is different for each; ``falling``: downwards.
    """
    whole = list(items)
    position = decode_cursor(kind, cursor, type(key(whole[0])) if whole else _type_in(cursor))
    if position is not None:
        start = position[0]
        whole = [one for one in whole if (key(one) < start if falling else key(one) > start)]
    some, more = page(whole, limit)
    return some, encode_cursor(kind, key(some[-1])) if more else None


def _type_in(cursor: str | None) -> type:
    """Return the type of what a cursor of an empty list holds: any list may have become empty."""
    content = _content(cursor or "")
    return int if isinstance(content, list) and isinstance(content[-1], int) else str


def bad_cursor() -> InvalidRequest:
    """Return the error for a cursor that this list has not given out."""
    return InvalidRequest(
        [FieldError("cursor", "is not a cursor of this list with these filters; take `next`")]
    )


def before_id(kind: str, cursor: str | None) -> int | None:
    """Return the id below which a list that is sorted by falling ids continues."""
    position = decode_cursor(kind, cursor, int)
    return None if position is None else int(position[0])


def page(items: list[T], limit: int) -> tuple[list[T], bool]:
    """Split what was read with ``limit + 1`` into the page, and whether there is a next one."""
    return items[:limit], len(items) > limit
