"""Requests and answers as kazoo serialises them, and its errors as ours.

What differs from the stock requests: creates, deletes and multis are serialised faster, a multi
answers with the zxid of what it created, and a session can list its ephemeral nodes. With
``client.py`` this is all that touches kazoo. It uses inner parts of kazoo 2.11; the integration
tests exercise every one of them.
"""

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from kazoo import exceptions as kazoo_errors
from kazoo.protocol import serialization as stock
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, make_acl, make_digest_acl

from shoal.coordination import errors

PERSISTENT, EPHEMERAL, SEQUENTIAL = 0, 1, 2

# What servers accept by default (jute.maxbuffer), in bytes, with the request's header.
MAX_REQUEST_BYTES = 0xFFFFF
_HEADER_BYTES = 8  # number and type of the request

_INT = struct.Struct("!i")
_OPERATION = struct.Struct("!iBi")  # type, whether this is the end, error


class Stat(NamedTuple):
    """What ZooKeeper knows of a znode. Zxids grow with every change in the whole tree."""

    czxid: int  # zxid of its creation
    mzxid: int  # zxid of the last change of its data
    pzxid: int  # zxid of the last creation or deletion of a child
    version: int  # changes of its data so far
    children_version: int  # creations and deletions of children so far
    session_id: int  # the session that holds it, if it is ephemeral, else 0
    children: int  # how many there are now
    mtime_ms: int  # when its data last changed, on the wall clock of the ensemble's leader


def stat_of(raw: Any) -> Stat:
    return Stat(
        czxid=raw.czxid,
        mzxid=raw.mzxid,
        pzxid=raw.pzxid,
        version=raw.version,
        children_version=raw.cversion,
        session_id=raw.ephemeralOwner,
        children=raw.numChildren,
        mtime_ms=raw.mtime,
    )


class _Create(stock.Create2):  # type: ignore[misc]
    def serialize(self) -> bytes:
        path = self.path.encode()
        return b"".join(
            (_length(path), path, _length(self.data), self.data, self.acl, _INT.pack(self.flags))
        )


class _Delete(stock.Delete):  # type: ignore[misc]
    def serialize(self) -> bytes:
        path: bytes = self.path.encode()
        return _length(path) + path + _INT.pack(self.version)


def _length(text: bytes) -> bytes:
    return _INT.pack(len(text))


def _serialized(acl: Sequence[Any]) -> bytes:
    """Return what a create without data or flags ends with: who may do what with the node."""
    path = b"/"
    whole = bytes(stock.Create2("/", b"", acl, 0).serialize())
    return whole[len(_length(path) + path + _length(b"")) : -_INT.size]


class Acl:
    """Who may do what with the nodes that a session creates; there is one for each session.

    ``credential`` is "scheme:secret": "digest:user:password", "sasl:user:password". With one, only
    a connection that shows it may do anything; without one, every connection may do everything.
    """

    def __init__(self, credential: str = "") -> None:
        scheme, _, secret = credential.partition(":")
        if not credential:
            self.entries: Sequence[Any] = OPEN_ACL_UNSAFE
        elif scheme == "digest":
            user, _, password = secret.partition(":")
            # By name, not as the present session's own: an administrator's session makes nodes of
            # the same kind.
            self.entries = [make_digest_acl(user, password, all=True)]
        elif scheme == "sasl":
            self.entries = [make_acl("sasl", secret.partition(":")[0], all=True)]
        else:
            self.entries = CREATOR_ALL_ACL
        self.bytes = _serialized(self.entries)


OPEN = Acl()


class _Multi(stock.Transaction):  # type: ignore[misc]
    """A transaction whose creates are answered with the new node's stat."""

    def serialize(self) -> bytes:
        parts = [
            part
            for operation in self.operations
            for part in (_OPERATION.pack(operation.type, 0, -1), operation.serialize())
        ]
        return b"".join((*parts, _OPERATION.pack(-1, 1, -1)))

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
        results: list[Any] = []
        header, offset = stock.MultiHeader.deserialize(data, offset)
        while not header.done:
            if header.type == stock.Create2.type:
                path, offset = stock.read_string(data, offset)
                stat = stock.ZnodeStat._make(stock.stat_struct.unpack_from(data, offset))
                results.append((path, stat))
                offset += stock.stat_struct.size
            elif header.type == stock.SetData.type:
                results.append(stock.ZnodeStat._make(stock.stat_struct.unpack_from(data, offset)))
                offset += stock.stat_struct.size
            elif header.type == -1:
                code = stock.int_struct.unpack_from(data, offset)[0]
                results.append(kazoo_errors.EXCEPTIONS[code]())
                offset += stock.int_struct.size
            else:
                results.append(None)
            header, offset = stock.MultiHeader.deserialize(data, offset)
        return results


class _Ephemerals(NamedTuple):
    """Which ephemeral nodes does this session have below a path? (ZooKeeper 3.6; not in kazoo.)"""

    path: str
    type: int = 103

    def serialize(self) -> bytes:
        path = self.path.encode()
        return _length(path) + path

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[str]:
        (count,) = _INT.unpack_from(data, offset)
        offset += _INT.size
        paths: list[str] = []
        for _ in range(count):
            path, offset = stock.read_string(data, offset)
            paths.append(path)
        return paths


def create(path: str, data: bytes, flags: int, acl: Acl = OPEN) -> Any:
    return _Create(path, data, acl.bytes, flags)


def get_acl(path: str) -> Any:
    return stock.GetACL(path)


def set_acl(path: str, acl: Acl) -> Any:
    return stock.SetACL(path, acl.entries, -1)


def delete(path: str, version: int = -1) -> Any:
    return _Delete(path, version)


def set_data(path: str, data: bytes, version: int = -1) -> Any:
    return stock.SetData(path, data, version)


def check(path: str, version: int) -> Any:
    return stock.CheckVersion(path, version)


def get(path: str, watch: Any = None) -> Any:
    return stock.GetData(path, watch)


def exists(path: str, watch: Any = None) -> Any:
    return stock.Exists(path, watch)


def children(path: str, watch: Any = None) -> Any:
    return stock.GetChildren2(path, watch)


def ephemerals(path: str) -> Any:
    return _Ephemerals(path)


def sync(path: str) -> Any:
    return stock.Sync(path)


def multi(requests: Sequence[Any]) -> Any:
    return _Multi(list(requests))


def serialize(request: Any, what: str, limit: int) -> bytes:
    """Return ``request`` without its header. ``limit`` is in bytes, with the header.

    Raises TooLarge and MalformedRequest: sent, or found out by the connection's thread, either
    would cost all users of the connection their requests.
    """
    try:
        body: bytes = request.serialize()
    except (ValueError, TypeError, AttributeError, struct.error) as error:
        raise errors.MalformedRequest(what, str(error)) from error
    size = _HEADER_BYTES + len(body)
    if size > limit:
        raise errors.TooLarge(what, size, limit)
    return body


_PATH_ERRORS: dict[type[Exception], type[errors.PathError]] = {
    kazoo_errors.NoNodeError: errors.NoNode,
    kazoo_errors.NodeExistsError: errors.NodeExists,
    kazoo_errors.NotEmptyError: errors.NotEmpty,
    kazoo_errors.BadVersionError: errors.BadVersion,
    kazoo_errors.NoAuthError: errors.AccessDenied,
    kazoo_errors.QuotaExceededError: errors.QuotaExceeded,
    kazoo_errors.BadArgumentsError: errors.InvalidPath,
}
_NOT_DONE = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)


def translate(error: Exception, verb: str, path: str) -> errors.CoordinationError:
    """Return our error for one of kazoo's."""
    if known := _PATH_ERRORS.get(type(error)):
        return known(path)
    if isinstance(error, kazoo_errors.ConnectionClosedError):
        return errors.SessionClosed(f"{verb} {path}")
    if isinstance(error, kazoo_errors.SessionExpiredError):
        return errors.SessionLost(f"{verb} {path}")
    if isinstance(error, kazoo_errors.ConnectionLoss | kazoo_errors.OperationTimeoutError):
        return errors.ConnectionLoss(f"{verb} {path}")
    return errors.ServerError(path, getattr(error, "code", 0) or 0, type(error).__name__)


_REFUSALS = (kazoo_errors.AuthFailedError, kazoo_errors.SessionClosedRequireSaslError)


def says_refused(error: Exception | None) -> bool:
    """Say whether an error means that the servers do not take our credential, or demand one."""
    return isinstance(error, _REFUSALS)


def says_expired(answer: Any, error: Exception | None) -> bool:
    """Say whether an answer means that the server no longer has the session."""
    found = [error, *answer] if isinstance(answer, list) else [error]
    return any(isinstance(one, kazoo_errors.SessionExpiredError) for one in found)


def translate_multi(
    results: Sequence[Any], paths: Sequence[str]
) -> errors.CoordinationError | None:
    """Return the failure among the results of a multi, or None if all succeeded.

    That is TransactionFailed, unless one of them is about the session and not about its path.
    """
    failures: list[errors.PathError | None] = [None] * len(results)
    rolled_back = False
    for index, (result, path) in enumerate(zip(results, paths, strict=True)):
        if isinstance(result, Exception):
            rolled_back = True
            if not isinstance(result, _NOT_DONE):
                error = translate(result, "multi", path)
                if not isinstance(error, errors.PathError):
                    return error
                failures[index] = error
    if not rolled_back:
        return None
    if not any(failures):  # rolled back, yet no operation says why
        failures[0] = errors.ServerError(paths[0], 0, "RolledBack")
    return errors.TransactionFailed(failures)
