"""The names that the API answers to.

A page of another site can have its own name point to this machine, and be served as if it were
one of ours ("DNS rebinding"). So a request has to name the API as its clients do.
"""

from collections.abc import Iterable

from starlette.requests import Request

from shoal.api.settings import ApiSettings
from shoal.api.web.errors import UnknownHost

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_ANY = ("0.0.0.0", "::")  # noqa: S104 - to tell that they are no names


def names_of(settings: ApiSettings) -> frozenset[str]:
    """Return the names, without ports and in lower case."""
    own = () if settings.host in _ANY else (_bracketed(settings.host),)
    return frozenset(_lower((*_LOOPBACK, *own, *settings.allowed_hosts)))


def check_host(request: Request, names: frozenset[str]) -> None:
    """Raise UnknownHost unless a request names the API by one of its names."""
    host = request.headers.get("host", "").lower()
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    if name not in names:
        raise UnknownHost(
            f"this API is not called {name[:100]!r}; its administrator can add the name to "
            "allowed_hosts in the section [api]"
        )


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _lower(names: Iterable[str]) -> Iterable[str]:
    return (name.lower().removesuffix(".") for name in names)
