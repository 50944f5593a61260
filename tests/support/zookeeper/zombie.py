"""A ZooKeeper server whose connection has outlived its session.

A session that ends while its client reconnects to a follower can leave such a connection behind:
the follower takes it before it hears of the end, and has then nothing to close. From then on pings
and ``sync`` are answered as ever, and everything that only a session can do is refused.
"""

import asyncio
import re
import struct

from shoal.coordination.session.security.digest_md5 import DigestMd5
from tests.support.zookeeper.secure import PASSWORD, USER

_PING, _SYNC, _MULTI, _AUTH, _SASL = 11, 9, 14, 100, 102
_CHALLENGE = b'realm="zk-sasl-md5",nonce="once",charset=utf-8,algorithm=md5-sess'
_SESSION_EXPIRED = -112
# The results of a transaction of one operation.
_REFUSED = struct.pack("!i?iii?i", -1, False, -112, -112, -1, True, -1)
_CONNECT = struct.Struct("!iqiq")  # version, zxid, timeout in ms, session


async def zombie(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one connection until the client closes it."""
    opening = await _frame(reader)
    version, _, timeout_ms, session = _CONNECT.unpack_from(opening)
    password = opening[_CONNECT.size : _CONNECT.size + 20]  # with its length
    _send(writer, struct.pack("!iiq", version, timeout_ms, session) + password + b"\0")
    while True:
        request = await _frame(reader)
        xid, kind = struct.unpack_from("!ii", request)
        if kind == _MULTI:
            _send(writer, _header(xid) + _REFUSED)
        elif kind == _SYNC:
            _send(writer, _header(xid) + request[8:])  # its path
        elif kind == _SASL:
            token = _sasl(request[12:])
            _send(writer, _header(xid) + struct.pack("!i", len(token)) + token)
        elif kind in (_PING, _AUTH):
            _send(writer, _header(xid))
        else:
            _send(writer, _header(xid, _SESSION_EXPIRED))


def _sasl(token: bytes) -> bytes:
    """Return the challenge, and then the proof that the server knows the password."""
    if not token:
        return _CHALLENGE
    nonce = re.findall(rb'cnonce="(.*?)"', token)[0].decode()
    twin = DigestMd5(USER, PASSWORD, nonce)
    twin.respond(_CHALLENGE)
    return b"rspauth=" + twin._proof


def _header(xid: int, error: int = 0) -> bytes:
    return struct.pack("!iqi", xid, 0, error)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack("!i", await reader.readexactly(4))
    return await reader.readexactly(size)


def _send(writer: asyncio.StreamWriter, content: bytes) -> None:
    writer.write(struct.pack("!i", len(content)) + content)
