"""The way to a server: look its name up once, judge every address, connect to a judged one.

Nothing between the judgement and the connection asks for the name again, so a name server that
answers differently the second time (DNS rebinding) changes nothing. Each connection is judged
anew, that of a redirect, too.
"""

import asyncio
import ipaddress
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import unquote_to_bytes, urlsplit

import httpcore

from shoal.core.errors import ShoalError
from shoal.runtime.outbound.addresses import AddressPolicy
from shoal.runtime.side.own_thread import call_in_own_thread

CONNECT_S = 10.0  # for each address of a host; the deadline of the task may end it earlier

# Returns the addresses of a host, for a port. Raises OSError, UnicodeError.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class AddressRefused(ShoalError):
    """The settings forbid this address."""

    def __init__(self, host: str, address: str, why: str) -> None:
        shown = host if host == address else f"{host} ({address})"
        super().__init__(
            f"{shown} may not be reached from this machine: {why}. Its administrator may allow it "
            "with the setting http_allow"
        )


@dataclass(frozen=True)
class Proxy:
    """The worker's own proxy, spoken to in HTTP.

    ``exceptions``: hosts, and domains with a dot before them, that are reached without it.
    """

    url: str
    exceptions: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> Self | None:
        """Return the proxy of a worker's settings, if there is one."""
        if not settings.get("http_proxy"):
            return None
        return cls(settings["http_proxy"], tuple(settings.get("http_no_proxy", "").split()))

    def is_for(self, host: str) -> bool:
        """Return whether requests to ``host`` go through it."""
        name = host.lower().rstrip(".")
        return not any(
            name == one.lower().lstrip(".") or (one[0] == "." and name.endswith(one.lower()))
            for one in self.exceptions
        )

    @property
    def address(self) -> tuple[str, int]:
        """Its host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 80

    @property
    def credentials(self) -> tuple[bytes, bytes] | None:
        """User and password, if it wants some."""
        parts = urlsplit(self.url)
        if parts.username is None:
            return None
        return unquote_to_bytes(parts.username), unquote_to_bytes(parts.password or "")


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, each once. Raises OSError, UnicodeError.

    In a thread of its own: a name server that is silent must hold up neither the
    deadline nor the end of the process.
    """

    def look_up() -> Sequence[str]:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(info[4][0]) for info in found))

    return await call_in_own_thread(look_up, "resolver")


def numeric(host: str) -> str | None:
    """Return the address that ``host`` spells, as the system reads it: ``127.1``, ``2130706433``,
    and ``localhost``, which is one everywhere. None if it is another name. Asks no name server.
    """
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return "127.0.0.1"
    try:
        found = socket.getaddrinfo(name, None, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return None
    return str(found[0][4][0])


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to addresses that the policy lets through, and to the worker's proxy."""

    def __init__(
        self, policy: AddressPolicy, proxy: Proxy | None = None, resolve: Resolve = resolve
    ) -> None:
        self._policy, self._resolve = policy, resolve
        self._proxy = proxy.address if proxy is not None else None
        self._inner = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect. Raises AddressRefused, httpcore.ConnectError."""
        addresses = await self._addresses(host, port)
        if (host, port) != self._proxy:  # which the worker's administrator has chosen
            self._require_allowed(host, addresses)
        trouble: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                return await self._inner.connect_tcp(
                    address, port, timeout=CONNECT_S, socket_options=socket_options
                )
            except httpcore.ConnectTimeout:
                trouble = httpcore.ConnectTimeout(f"{address} does not answer")
            except httpcore.ConnectError as error:
                trouble = httpcore.ConnectError(f"{address}: {_plainly(error)}")
        raise trouble

    async def sleep(self, seconds: float) -> None:
        """See httpcore."""
        await asyncio.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            return await self._resolve(host, port)
        except UnicodeError:
            raise httpcore.ConnectError("the host's name cannot be looked up") from None
        except OSError as error:
            raise httpcore.ConnectError(f"cannot look its name up: {error.strerror}") from error

    def _require_allowed(self, host: str, addresses: Sequence[str]) -> None:
        """Refuse the host for any of its addresses: which one is used is chance."""
        for address in addresses:
            require_allowed(self._policy, host, address)


async def open_socket(policy: AddressPolicy, host: str, port: int) -> socket.socket:
    """Return a connection to a judged address of ``host``, for libraries that take one.

    Raises AddressRefused, OSError.
    """
    loop = asyncio.get_running_loop()
    try:
        addresses = await resolve(host, port)
    except UnicodeError:
        raise OSError("the host's name cannot be looked up") from None
    for address in addresses:
        require_allowed(policy, host, address)
    trouble: OSError = OSError(f"{host} has no address")
    for address in addresses:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            async with asyncio.timeout(CONNECT_S):
                await loop.sock_connect(connection, (address, port))
        except TimeoutError:
            connection.close()
            trouble = OSError(f"{address} does not answer")
        except OSError as error:
            connection.close()
            trouble = OSError(f"{address}: {error.strerror or error}")
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise trouble


def require_allowed(policy: AddressPolicy, host: str, address: str) -> None:
    """Raise AddressRefused unless ``policy`` lets this address of ``host`` through."""
    if why := policy.refusal(address):
        raise AddressRefused(host, str(ipaddress.ip_address(address)), why)


def _plainly(error: BaseException) -> str:
    """Return what the system said, which libraries wrap several times."""
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, OSError) and found.errno:
            return os.strerror(found.errno)
        if isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
        else:
            found = found.__cause__ or found.__context__
    return "cannot connect"
