"""What is sent for an operation and how its answer is read, apart from who sends it.

``Operations`` names every operation, and a command needs a few of them: the functions that make
their calls are in a module for each tag of the API, which is imported with the first use
(``calls_of``).
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from importlib import import_module
from inspect import Parameter, signature
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast
from urllib.parse import quote

from shoal.client.libraries import httpx
from shoal.client.rest.operations.exchange import CONNECT_TIMEOUT_S, ApiExchange

P = ParamSpec("P")
T = TypeVar("T")
UPLOAD_TIMEOUT_S = 300.0  # the server may take long to store a file
_REPEATED = frozenset({"GET", "PUT", "DELETE"})
_KEY = "idempotency-key"
# A second try would be refused because of what the first one has changed.
_PRECONDITIONS = frozenset({"if-match", "if-none-match"})


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request whose answer is a JSON value of type ``T``, or nothing.

    ``body`` is JSON; ``content`` is bytes, or their pieces if these can be read several times. What
    is None in query and headers is not sent. ``repeat`` says whether sending it twice does what
    sending it once does, if method and headers do not.
    """

    method: str
    path: str  # below /api/v1
    query: Mapping[str, Any] | None = None
    headers: Mapping[str, str | None] | None = None
    body: Any = None
    content: bytes | Iterable[bytes] | None = field(default=None, repr=False)
    repeat: bool | None = None

    @property
    def may_repeat(self) -> bool:
        """Whether sending it twice does what sending it once does."""
        if self.repeat is not None:
            return self.repeat
        given = _given(self.headers).keys()
        return _KEY in given or (self.method in _REPEATED and not given & _PRECONDITIONS)

    @property
    def rest(self) -> dict[str, Any]:
        """The rest of the request, as httpx takes it."""
        headers = _given(self.headers)
        found: dict[str, Any] = {"headers": headers}
        if self.body is not None:
            found["json"] = self.body
        if self.content is not None:
            headers["Content-Type"] = "application/octet-stream"
            found["content"] = self.content
            found["timeout"] = httpx.Timeout(UPLOAD_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        return found

    def read(self, exchange: ApiExchange, response: httpx.Response) -> T:
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


class CallSender(Protocol):
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

    sender: CallSender


class HasAsyncSender(Protocol):
    """The same without blocking."""

    sender: AsyncSender


class _Calls:
    """A module of calls that is imported as soon as one of its functions is needed."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[[], Callable[..., Any]]:
        return lambda: cast("Callable[..., Any]", getattr(import_module(self._module), name))


def calls_of(module: str) -> Any:
    """Return what stands for a module of calls in ``now`` and its like, until it is needed."""
    return _Calls(module)


class _Method:
    """Becomes the method that ``wrap`` makes of a function of calls, with the first use."""

    def __init__(self, find: Callable[[], Callable[..., Any]], wrap: Callable[..., Any]) -> None:
        self._find, self._wrap = find, wrap

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        build = self._find()
        method = self._wrap(build)
        method.__name__, method.__doc__ = build.__name__, build.__doc__
        method.__qualname__ = f"{self._owner.__name__}.{self._name}"
        taken = signature(build)
        own = Parameter("self", Parameter.POSITIONAL_ONLY)
        method.__signature__ = taken.replace(parameters=[own, *taken.parameters.values()])
        setattr(self._owner, self._name, method)
        return getattr(owner if instance is None else instance, self._name)


def now(build: Callable[P, Call[T]]) -> Callable[Concatenate[HasSender, P], T]:
    """Return the method that sends what ``build`` makes of its arguments."""

    def wrap(build: Callable[P, Call[T]]) -> Callable[Concatenate[HasSender, P], T]:
        def method(self: HasSender, /, *args: P.args, **named: P.kwargs) -> T:
            return self.sender.send(build(*args, **named))

        return method

    return cast("Callable[Concatenate[HasSender, P], T]", _Method(cast(Any, build), wrap))


def later(build: Callable[P, Call[T]]) -> Callable[Concatenate[HasAsyncSender, P], Awaitable[T]]:
    """Return the method that does the same without blocking."""

    def wrap(
        build: Callable[P, Call[T]],
    ) -> Callable[Concatenate[HasAsyncSender, P], Awaitable[T]]:
        async def method(self: HasAsyncSender, /, *args: P.args, **named: P.kwargs) -> T:
            return await self.sender.send(build(*args, **named))

        return method

    found = _Method(cast(Any, build), wrap)
    return cast("Callable[Concatenate[HasAsyncSender, P], Awaitable[T]]", found)


Opened = AbstractContextManager[httpx.Response]
OpenedLater = AbstractAsyncContextManager[httpx.Response]


def stream_now(build: Callable[P, StreamCall]) -> Callable[Concatenate[HasSender, P], Opened]:
    """Return the method that opens what ``build`` makes of its arguments."""

    def wrap(build: Callable[P, StreamCall]) -> Callable[Concatenate[HasSender, P], Opened]:
        def method(self: HasSender, /, *args: P.args, **named: P.kwargs) -> Opened:
            return self.sender.open(build(*args, **named))

        return method

    return cast("Callable[Concatenate[HasSender, P], Opened]", _Method(cast(Any, build), wrap))


def stream_later(
    build: Callable[P, StreamCall],
) -> Callable[Concatenate[HasAsyncSender, P], OpenedLater]:
    """Return the method that does the same without blocking."""

    def wrap(
        build: Callable[P, StreamCall],
    ) -> Callable[Concatenate[HasAsyncSender, P], OpenedLater]:
        def method(self: HasAsyncSender, /, *args: P.args, **named: P.kwargs) -> OpenedLater:
            return self.sender.open(build(*args, **named))

        return method

    found = _Method(cast(Any, build), wrap)
    return cast("Callable[Concatenate[HasAsyncSender, P], OpenedLater]", found)


def part(name: str) -> str:
    """Return a name as one part of a path, whatever is in it."""
    quoted = quote(name, safe="")
    # Dots alone would be folded away as relative parts.
    return quoted.replace(".", "%2E") if set(quoted) <= {"."} and quoted else quoted


def parts(path: str) -> str:
    """Return the path of a file as parts of an address."""
    return "/".join(part(one) for one in path.split("/"))
