"""Znodes that cannot be what their place is for are quarantined, with a reason.

::

    /quarantine/n<number>    one of them (JSON): path, reason, size, when, and how it began

A process that finds such a znode does not go by it. It calls ``isolate``, which removes the znode
(or puts something sound in its place) and keeps a record. There are ``MOST`` records of a few
kilobytes at most: the oldest go. A record that cannot be written stops no process.
"""

import asyncio
import base64
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import structlog

from shoal.coordination.errors import BadVersion, CoordinationError, NoNode, NotEmpty
from shoal.coordination.session.documents import read_object
from shoal.coordination.session.nodes import Node
from shoal.coordination.session.session import ZkSession
from shoal.coordination.znodes import QUARANTINE

log = structlog.get_logger()

MOST = 50  # records
SHOWN_BYTES = 2048  # of the data of a znode; of its path and the reason as many characters
DEEPEST = 8  # levels below a znode that are removed with it
_NAME = re.compile(r"n[0-9]{10}", re.ASCII)


@dataclass(frozen=True, slots=True)
class IsolatedZnode:
    """A record: what stood at ``path`` and why it could not stay."""

    path: str
    reason: str
    size: int  # bytes of its data
    at: datetime | None  # on the clock of the process that found it
    data: bytes  # how it began


async def isolate(
    session: ZkSession, path: str, node: Node, reason: str, *, put: bytes | None = None
) -> bool:
    """Remove ``node`` and all below it, or replace its data by ``put``; keep a record.

    Returns False if it has changed since it was read, or is gone: then there is nothing to
    repair, or something else. Raises ConnectionLoss, SessionLost, AccessDenied.
    """
    try:
        if put is None:
            await _remove(session, path, node.stat.version)
        else:
            await session.set(path, put, version=node.stat.version)
    except (BadVersion, NoNode):
        return False
    log.error("znode quarantined", path=path, reason=reason, size=len(node.data))
    try:
        await _record(session, path, node.data, reason)
    except CoordinationError as error:
        log.warning("no record of a quarantined znode", path=path, error=str(error))
    return True


async def isolate_name(session: ZkSession, path: str, reason: str) -> bool:
    """As ``isolate``, for a znode of which only the name has been seen so far."""
    try:
        node = await session.get(path)
    except NoNode:
        return False
    return await isolate(session, path, node, reason)


async def count(session: ZkSession) -> int:
    """Return how many records there are. Raises ConnectionLoss."""
    stat = await session.exists(QUARANTINE)
    return stat.children if stat else 0


async def records(session: ZkSession) -> list[IsolatedZnode]:
    """Return the records, the oldest first. Raises ConnectionLoss."""
    found: list[IsolatedZnode] = []
    for name in await _names(session, QUARANTINE):
        try:
            node = await session.get(f"{QUARANTINE}/{name}")
        except NoNode:
            continue
        fields = read_object(node.data) or {}
        found.append(
            IsolatedZnode(
                path=str(fields.get("path", f"{QUARANTINE}/{name}"))[:SHOWN_BYTES],
                reason=str(fields.get("reason", "unreadable record"))[:SHOWN_BYTES],
                size=size if isinstance(size := fields.get("size"), int) else len(node.data),
                at=_instant(fields.get("at")),
                data=_bytes(fields.get("data")),
            )
        )
    return found[-MOST:]


async def _record(session: ZkSession, path: str, data: bytes, reason: str) -> None:
    record = {
        "path": path[:SHOWN_BYTES],
        "reason": reason[:SHOWN_BYTES],
        "size": len(data),
        "at": datetime.now(UTC).isoformat(),
        "data": base64.b64encode(data[:SHOWN_BYTES]).decode("ascii"),
    }
    await session.create(
        f"{QUARANTINE}/n", json.dumps(record).encode(), sequential=True, makepath=True
    )
    names = await _names(session, QUARANTINE)
    strangers = [name for name in names if not _NAME.fullmatch(name)]
    ours = [name for name in names if _NAME.fullmatch(name)]
    for name in strangers + ours[:-MOST]:
        await _remove(session, f"{QUARANTINE}/{name}", -1)


async def _remove(session: ZkSession, path: str, version: int, depth: int = 0) -> None:
    """Delete ``path`` and what is below it. Raises BadVersion, NoNode; NotEmpty if too deep."""
    while True:
        try:
            return await session.delete(path, version=version)
        except NotEmpty:
            if depth >= DEEPEST:
                raise
        below = [f"{path}/{name}" for name in await _names(session, path)]
        removals = [_remove(session, child, -1, depth + 1) for child in below]
        for error in await asyncio.gather(*removals, return_exceptions=True):
            if isinstance(error, BaseException) and not isinstance(error, NoNode):
                raise error


async def _names(session: ZkSession, path: str) -> list[str]:
    try:
        return sorted((await session.children(path)).names)
    except NoNode:
        return []


def _instant(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def _bytes(value: Any) -> bytes:
    try:
        return base64.b64decode(value, validate=True)[:SHOWN_BYTES]
    except (TypeError, ValueError):
        return b""
