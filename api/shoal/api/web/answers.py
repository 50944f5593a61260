"""How answers are made: large ones in a thread, and without the rows that cannot be shown.

An answer about thousands of tasks is made and written in a thread, piece by piece: one long step
of the interpreter would block all threads.

Stored rows may hold values that this version cannot show, such as an unknown priority. Such a row
becomes an ``UnreadableRow`` error, and lists leave it out, so that the other rows stay readable.
Repositories find most of them (``shoal.sql.statements.rows``), this module the rest.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from fastapi import Response
from pydantic import BaseModel

from shoal.core.definition import long_json
from shoal.core.errors import ShoalError
from shoal.core.runs.quarantine import reason_of
from shoal.sql.errors import UnreadableRow
from shoal.sql.statements.rows import leave_out

MOST_AT_ONCE = 200  # tasks, about which an answer is made in the event loop's own thread


async def answer(make: Callable[[], BaseModel], tasks: int, status_code: int = 200) -> Response:
    """Return what ``make`` makes as a response; ``tasks``: how many it is about at most."""
    if tasks > MOST_AT_ONCE:
        content = await asyncio.to_thread(_content, make)
    else:
        content = _content(make)
    return Response(content, status_code, media_type="application/json")


def _content(make: Callable[[], BaseModel]) -> bytes:
    return "".join(_pieces(make())).encode()


def _pieces(model: BaseModel) -> Iterator[str]:
    """Yield the JSON of a model, that of its lists and of plain values item by item."""
    long = {name: value for name, value in model if isinstance(value, list | dict)}
    yield model.model_dump_json(exclude=set(long)).removesuffix("}")
    for name, value in long.items():
        yield f',"{name}":'
        if isinstance(value, list) and all(isinstance(one, BaseModel) for one in value):
            yield "["
            for number, one in enumerate(value):
                yield ("," if number else "") + one.model_dump_json()
            yield "]"
        else:
            yield long_json.compact(value)
    yield "}"


T = TypeVar("T")
S = TypeVar("S")
_ILLEGIBLE = (ValueError, TypeError, LookupError, AttributeError)


@contextmanager
def legible(kind: str, key: object) -> Iterator[None]:
    """Raise UnreadableRow for a row of which the block cannot make an answer."""
    try:
        yield
    except ShoalError:
        raise
    except _ILLEGIBLE as error:
        raise UnreadableRow(kind, key, reason_of(error)) from error


def shown(
    kind: str, items: Iterable[S], make: Callable[[S], T], key: Callable[[S], object]
) -> list[T]:
    """Return what ``make`` makes of each item; one of which it can make nothing is left out."""
    found: list[T] = []
    for item in items:
        try:
            with legible(kind, key(item)):
                found.append(make(item))
        except UnreadableRow as error:
            leave_out(error)
    return found


def by_id(item: Any) -> object:
    """Return what most rows are named by."""
    return item.id


def by_name(item: Any) -> object:
    """Return what a project's things are named by."""
    return item.name
