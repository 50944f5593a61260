"""Answers that may be about thousands of tasks: those are made, and written, in a thread.

Piece by piece, for what is one step of the interpreter keeps all threads from running.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from fastapi import Response
from pydantic import BaseModel

from shoal.core.definition import long_json

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
        yield from _long_pieces(value)
    yield "}"


def _long_pieces(value: list[Any] | dict[str, Any]) -> Iterator[str]:
    if isinstance(value, list) and all(isinstance(one, BaseModel) for one in value):
        yield "["
        for number, one in enumerate(value):
            yield ("," if number else "") + one.model_dump_json()
        yield "]"
    else:
        yield long_json.compact(value)
