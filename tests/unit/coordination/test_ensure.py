"""Creating a path while other processes delete a part of it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from shoal.coordination.errors import (
    AccessDenied,
    CoordinationError,
    NodeExists,
    NoNode,
    PathError,
)
from shoal.coordination.session import wire
from shoal.coordination.session.requests import Proof, Requests


class Scripted(Requests):
    """Answers creates with the errors of a script, in turn."""

    def __init__(self, *answers: type[PathError] | None) -> None:
        self._chroot, self._acl = "", wire.OPEN
        self._answers = list(answers)

    def _request(
        self,
        verb: str,
        path: str,
        request: Any,
        convert: Callable[[Any], Any],
        proves: Proof = Proof.NOTHING,
    ) -> "asyncio.Future[Any]":
        future = asyncio.get_running_loop().create_future()
        error = self._answers.pop(0) if verb == "create" else None
        if error is None:
            future.set_result(None)  # an exists: it does not
        else:
            future.set_exception(error(path))
        return future

    def _watch(self, callback: object) -> None:
        return None

    @property
    def left(self) -> int:
        return len(self._answers)


async def test_a_parent_that_goes_while_the_path_is_made_is_made_again() -> None:
    session = Scripted(NodeExists, NodeExists, NoNode, NodeExists, None, None)
    await session.ensure("/a/b/c")
    assert not session.left


async def test_a_parent_that_always_goes_is_an_error_that_is_not_final() -> None:
    session = Scripted(*[NodeExists, NodeExists, NoNode] * 5)
    with pytest.raises(NoNode, match="/a/b/c") as failure:
        await session.ensure("/a/b/c")
    assert not failure.value.is_final
    assert not session.left


async def test_a_refused_node_is_named_at_the_first_try() -> None:
    session = Scripted(NodeExists, AccessDenied, NoNode)
    with pytest.raises(CoordinationError, match="znode /a/b: ") as failure:
        await session.ensure("/a/b/c")
    assert failure.value.is_final
