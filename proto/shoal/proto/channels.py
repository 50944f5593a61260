"""The calling side: one cached channel per address, typed stubs, translated errors."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self, TypeVar

import grpc
import grpc.aio

from shoal.proto.errors import PeerRefused, PeerUnavailable
from shoal.proto.shoal_pb2_grpc import (
    LogServiceStub,
    MasterServiceStub,
    ProbeServiceStub,
    ProgressServiceStub,
    WorkerServiceStub,
)
from shoal.proto.tls import NODE_NAME, TlsFiles

if TYPE_CHECKING:  # these exist in the stub file only
    from shoal.proto.shoal_pb2_grpc import (
        LogServiceAsyncStub,
        MasterServiceAsyncStub,
        ProbeServiceAsyncStub,
        ProgressServiceAsyncStub,
        WorkerServiceAsyncStub,
    )

T = TypeVar("T")

LONGEST_CALL_S = 30.0  # of those that are under way when a connection is given up
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_OPTIONS = [
    ("grpc.ssl_target_name_override", NODE_NAME),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # Reconnect quickly: members come back at the same address only by chance, but their
    # successors are found by asking again.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.enable_http_proxy", 0),
    # Each channel has a connection of its own: a new one does not take over that of an old one.
    ("grpc.use_local_subchannel_pool", 1),
]
_UNAVAILABLE = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)


class Channels:
    """Channels to peers by address (``host:port``). Close with the ``async with`` block."""

    def __init__(self, tls: TlsFiles) -> None:
        self._credentials = tls.channel_credentials()
        self._channels: dict[str, grpc.aio.Channel] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for channel in self._channels.values():
            await channel.close(None)
        self._channels.clear()
        for closing in self._closing:
            closing.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)

    def master(self, address: str) -> "MasterServiceAsyncStub":
        """Return the stub of a master."""
        return MasterServiceStub(self._channel(address))

    def worker(self, address: str) -> "WorkerServiceAsyncStub":
        """Return the stub of a worker."""
        return WorkerServiceStub(self._channel(address))

    def probe(self, address: str) -> "ProbeServiceAsyncStub":
        """Return the probe service of a worker."""
        return ProbeServiceStub(self._channel(address))

    def progress(self, address: str) -> "ProgressServiceAsyncStub":
        """Return the progress service of a worker."""
        return ProgressServiceStub(self._channel(address))

    def logs(self, address: str) -> "LogServiceAsyncStub":
        """Return the log service of a worker."""
        return LogServiceStub(self._channel(address))

    def _channel(self, address: str) -> grpc.aio.Channel:
        channel = self._channels.get(address)
        if channel is None:
            channel = grpc.aio.secure_channel(address, self._credentials, options=_OPTIONS)
            self._channels[address] = channel
        return channel

    @asynccontextmanager
    async def another_to_master(self, address: str) -> "AsyncIterator[MasterServiceAsyncStub]":
        """Yield the stub of a master over a connection that no other caller uses, now or later."""
        channel = grpc.aio.secure_channel(address, self._credentials, options=_OPTIONS)
        try:
            yield MasterServiceStub(channel)
        finally:
            await channel.close(None)

    def renew(self, address: str) -> None:
        """Make further calls over a new connection; those under way keep theirs until they end."""
        channel = self._channels.pop(address, None)
        if channel is not None:
            closing = asyncio.create_task(channel.close(LONGEST_CALL_S))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)

    async def forget(self, address: str) -> None:
        """Close the channel to a peer that is gone for good."""
        channel = self._channels.pop(address, None)
        if channel is not None:
            await channel.close(None)


def translated(address: str, error: grpc.aio.AioRpcError) -> PeerUnavailable | PeerRefused:
    """Return the Shoal error for a gRPC one."""
    detail = error.details() or error.code().name
    if error.code() in _UNAVAILABLE:
        return PeerUnavailable(address, detail)
    return PeerRefused(address, error.code().name, detail)


async def call(address: str, pending: Awaitable[T]) -> T:
    """Await one unary call. Raises PeerUnavailable or PeerRefused."""
    try:
        return await pending
    except grpc.aio.AioRpcError as error:
        raise translated(address, error) from error
    except asyncio.CancelledError as error:
        caller = asyncio.current_task()
        if caller is None or caller.cancelling():
            raise
        # Our call was not cancelled: the channel was closed under the call.
        raise PeerUnavailable(address, "the connection was closed") from error
