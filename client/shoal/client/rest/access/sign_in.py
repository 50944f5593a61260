"""Signing in with a name and a password: a session for as long as a block lasts.

The cookie of a session is for https alone, and browsers know our own machine as the one
exception. So do we: elsewhere a password that is not encrypted is not sent.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlsplit

from shoal.client.errors import ApiProblem, ApiUnreachable, NotEncrypted
from shoal.client.rest.access.account import AccountCalls
from shoal.client.rest.connection import LOOPBACK, Connection

COOKIE = "__Host-shoal"
_TIMEOUT_S = 30.0  # others may be signing in, which is slow on purpose
# What changes something by a cookie must say that no page of another site has asked for it.
_BY_HAND = MappingProxyType({"Sec-Fetch-Site": "none"})


class Session(AccountCalls):
    """What one may do with one's account after signing in with the password."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection


@contextmanager
def sign_in(
    url: str, name: str, password: str, *, hint: str, ca: Path | None = None
) -> Iterator[Session]:
    """Sign in at the API at ``url`` for as long as the block lasts.

    Raises ApiProblem with status 401 for a wrong name or password, 429 after too many of them;
    ApiUnreachable; NotEncrypted.
    """
    require_encryption(url)
    cookie = _cookie(url, name, password, hint, ca)
    headers = {"Cookie": f"{COOKIE}={cookie}", **_BY_HAND}
    connection = Connection(url, headers, _TIMEOUT_S, hint, refused=None, ca=ca)
    try:
        yield Session(connection)
    finally:
        with suppress(ApiProblem, ApiUnreachable):  # it ends by itself, half an hour later
            connection.request("POST", "/logout", repeat=False)
        connection.close()


def require_encryption(url: str) -> None:
    """Return if a password may be sent to ``url``. Raises NotEncrypted."""
    parts = urlsplit(url)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK:
        raise NotEncrypted(url)


def _cookie(url: str, name: str, password: str, hint: str, ca: Path | None) -> str:
    connection = Connection(url, {}, _TIMEOUT_S, hint, refused=None, ca=ca)
    try:
        body = {"name": name, "password": password}
        answer = connection.request("POST", "/login", json=body, repeat=False)
    finally:
        connection.close()
    found = answer.cookies.get(COOKIE)
    if found is None:
        detail = f"{url} begins no session; is that the address of a Shoal API?"
        raise ApiProblem(answer.status_code, "no-session", "No session", detail)
    return found
