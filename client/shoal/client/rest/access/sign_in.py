"""Signing in with a name and a password: a session for as long as a block lasts.

The cookie of a session is for https alone, and browsers know our own machine as the one
exception. So do we: elsewhere a password that is not encrypted is not sent.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from shoal.client.errors import ApiProblem, ApiUnreachable, NotEncrypted
from shoal.client.rest.connection import LOOPBACK, ApiConnection
from shoal.client.rest.operations.call import Call
from shoal.client.rest.operations.exchange import ApiAddress
from shoal.client.rest.operations.generated.operations import Operations

if TYPE_CHECKING:
    from shoal.client.rest.operations.generated.types import WayOut

COOKIE = "__Host-shoal"
# What changes something by a cookie must say that no page of another site has asked for it.
_BY_HAND = MappingProxyType({"Sec-Fetch-Site": "none"})


def ways(place: ApiAddress) -> "list[WayOut]":
    """Return the ways of signing in. Raises ApiUnreachable."""
    with closing(ApiConnection(place, {})) as connection:
        return Operations(connection).get_ways()["items"]


def sign_in(
    url: str,
    name: str,
    password: str,
    *,
    hint: str,
    ca: Path | None = None,
    directory: bool = False,
) -> AbstractContextManager[Operations]:
    """Sign in at the API at ``url`` for as long as the block lasts.

    ``directory``: by the password of its directory (LDAP), not by one that the API keeps. Raises
    ApiProblem with status 401 for a wrong name or password, 429 after too many of them;
    ApiUnreachable; NotEncrypted.
    """
    from shoal.client.rest.operations.generated.calls import account

    login = account.login_by_directory if directory else account.login
    return _session(ApiAddress(url, hint, ca=ca), login({"name": name, "password": password}))


def sign_in_by_code(
    place: ApiAddress, code: str, verifier: str
) -> AbstractContextManager[Operations]:
    """Sign in with what a browser has brought, which is good once. Raises as ``sign_in`` does."""
    from shoal.client.rest.operations.generated.calls import account

    return _session(place, account.login_by_code({"code": code, "verifier": verifier}))


@contextmanager
def _session(place: ApiAddress, login: Call[None]) -> Iterator[Operations]:
    require_encryption(place.url)
    cookie = _cookie(place, login)
    connection = ApiConnection(place, {"Cookie": f"{COOKIE}={cookie}", **_BY_HAND})
    session = Operations(connection)
    try:
        yield session
    finally:
        with suppress(ApiProblem, ApiUnreachable):  # it ends by itself, half an hour later
            session.logout()
        connection.close()


def require_encryption(url: str) -> None:
    """Return if a password may be sent to ``url``. Raises NotEncrypted."""
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise NotEncrypted(url)


def _cookie(place: ApiAddress, login: Call[None]) -> str:
    with closing(ApiConnection(place, {})) as connection:
        answer = connection.answer(login)
    found = answer.cookies.get(COOKIE)
    if found is None:
        detail = f"{place.url} begins no session; is that the address of a Shoal API?"
        raise ApiProblem(answer.status_code, "no-session", "No session", detail)
    return found
