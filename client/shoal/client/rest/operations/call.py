"""What is sent for an operation and how its answer is read, apart from who sends it."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from shoal.client.rest.lean_httpx import httpx
from shoal.client.rest.operations.exchange import Exchange

P = ParamSpec("P")
T = TypeVar("T")
_REPEATED = frozenset({"GET", "PUT", "DELETE"})
_KEY = "Idempotency-Key"


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request whose answer is a JSON value of type ``T``, or nothing.

    ``body`` is JSON; ``content`` is bytes. What is None in query and headers is not sent.
    """

    method: str
    path: str  # below /api/v1
    query: Mapping[str, Any] | None = None
    headers: Mapping[str, str | None] | None = None
    body: Any = None
    content: bytes | None = field(default=None, repr=False)

    @property
    def may_repeat(self) -> bool:
        """Whether sending it twice does what sending it once does."""
        return self.method in _REPEATED or _KEY.lower() in _given(self.headers)

    @property
    def rest(self) -> dict[str, Any]:
        """The rest of the request, as httpx takes it."""
        found: dict[str, Any] = {"headers": _given(self.headers)}
        if self.body is not None:
            found["json"] = self.body
        if self.content is not None:
            found["content"] = self.content
        return found

    def read(self, exchange: Exchange, response: httpx.Response) -> T:
        """Return the answer."""
        if response.status_code == httpx.codes.NO_CONTENT:
            return cast(T, None)
        return cast(T, exchange.json_of(response))


@dataclass(frozen=True)
class StreamCall:
    """A request whose answer is read bit by bit: events, or the bytes of a file."""

    path: str
    query: Mapping[str, Any] | None = None
    all_headers: Mapping[str, str | None] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """Its headers."""
        return _given(self.all_headers)


def _given(headers: Mapping[str, str | None] | None) -> dict[str, str]:
    return {name: value for name, value in (headers or {}).items() if value is not None}


class Sender(Protocol):
    """Sends, and waits for the answer."""

    def send(self, call: Call[T]) -> T:
        """Return what an operation answers."""
        ...

    def open(self, call: StreamCall) -> AbstractContextManager[httpx.Response]:
        """Open what an operation answers bit by bit."""
        ...


class AsyncSender(Protocol):
    """The same without blocking."""

    async def send(self, call: Call[T]) -> T:
        """Return what an operation answers."""
        ...

    def open(self, call: StreamCall) -> AbstractAsyncContextManager[httpx.Response]:
        """Open what an operation answers bit by bit."""
        ...


class HasSender(Protocol):
    """What methods of operations are in."""

    sender: Sender


class HasAsyncSender(Protocol):
    """The same without blocking."""

    sender: AsyncSender


def now(build: Callable[P, Call[T]]) -> Callable[Concatenate[HasSender, P], T]:
    """Return the method that sends what ``build`` makes of its arguments."""

    def method(self: HasSender, /, *args: P.args, **named: P.kwargs) -> T:
        return self.sender.send(build(*args, **named))

    return _as(build, method)


def later(build: Callable[P, Call[T]]) -> Callable[Concatenate[HasAsyncSender, P], Awaitable[T]]:
    """Return the method that does the same without blocking."""

    async def method(self: HasAsyncSender, /, *args: P.args, **named: P.kwargs) -> T:
        return await self.sender.send(build(*args, **named))

    return _as(build, method)


def stream_now(
    build: Callable[P, StreamCall],
) -> Callable[Concatenate[HasSender, P], AbstractContextManager[httpx.Response]]:
    """Return the method that opens what ``build`` makes of its arguments."""

    def method(
        self: HasSender, /, *args: P.args, **named: P.kwargs
    ) -> AbstractContextManager[httpx.Response]:
        return self.sender.open(build(*args, **named))

    return _as(build, method)


def stream_later(
    build: Callable[P, StreamCall],
) -> Callable[Concatenate[HasAsyncSender, P], AbstractAsyncContextManager[httpx.Response]]:
    """Return the method that does the same without blocking."""

    def method(
        self: HasAsyncSender, /, *args: P.args, **named: P.kwargs
    ) -> AbstractAsyncContextManager[httpx.Response]:
        return self.sender.open(build(*args, **named))

    return _as(build, method)


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _as(build: Callable[..., Any], method: _Method) -> _Method:
    method.__name__, method.__doc__ = build.__name__, build.__doc__
    return method
