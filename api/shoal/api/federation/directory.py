"""A directory (LDAP): a password is right if a bind with it succeeds.

Encrypted always, with a certificate that is checked. Nothing is followed elsewhere: no referral.
The library waits for sockets, so it works in threads of its own; a directory that hangs delays
only those who sign in there.
"""

import asyncio
import ssl
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import structlog

from shoal.api.federation.errors import IssuerUnavailable
from shoal.api.federation.identity import Identity, IssuerRules, is_subject
from shoal.api.settings import LdapSettings
from shoal.api.web.errors import TooManyRequests

with warnings.catch_warnings():  # the library asks pyasn1 for names that are deprecated
    warnings.simplefilter("ignore", DeprecationWarning)
    import ldap3
    import ldap3.core.exceptions
    import ldap3.utils.conv
    import ldap3.utils.dn

__all__ = ["Directory", "VerifiedTls", "ldap3"]  # others import the library from here

log = structlog.get_logger()

_THREADS, _MOST_WAITING = 4, 40
_SUCCESS = 0  # RFC 4511, 4.1.9
_MOST_GROUPS = 5000
_Entry = tuple[str, Mapping[str, Any]]


class _UnusableServer(Exception):
    """A server cannot identify a user. The text is for the log."""


class VerifiedTls(ldap3.Tls):  # type: ignore[misc]  # the library has no types
    """The library's own check knows no IP addresses, and uses what Python is about to drop."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(validate=ssl.CERT_REQUIRED)
        self._context = context

    def wrap_socket(self, connection: Any, do_handshake: bool = False) -> None:
        """Encrypt a connection, for the name of its server. Raises ssl.SSLError, OSError."""
        connection.socket = self._context.wrap_socket(
            connection.socket, server_hostname=connection.server.host
        )


class Directory:
    """Asks the servers of a directory, the first that answers. One event loop; close it."""

    def __init__(
        self, settings: LdapSettings, password: str | None, context: ssl.SSLContext
    ) -> None:
        self.settings = settings
        self._password, self._tls = password, VerifiedTls(context)
        self._pool = ThreadPoolExecutor(_THREADS, "directory")
        self._under_way = 0
        groups = {normal_dn(theirs): ours for theirs, ours in settings.groups.items()}
        self.rules = IssuerRules(settings.make_accounts, groups)

    @property
    def name(self) -> str:
        """What it is called in addresses."""
        return self.settings.name

    @property
    def issuer(self) -> str:
        """The issuer of the identities that it knows."""
        return f"ldap:{self.settings.name}"

    def close(self) -> None:
        """Ask nothing more; what is under way ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def identity(self, name: str, password: str) -> Identity | None:
        """Return the identity with this name and password; None: there is none.

        Raises IssuerUnavailable, TooManyRequests.
        """
        if not password:  # a server would let anybody in: RFC 4513, 5.1.2
            return None
        if self._under_way >= _MOST_WAITING:
            raise TooManyRequests("too many are signing in at this moment", retry_after_s=2)
        self._under_way += 1
        work = asyncio.get_running_loop().run_in_executor(self._pool, self._ask, name, password)
        work.add_done_callback(self._ended)
        most_s = self.settings.timeout_s * 2 * len(self.settings.servers)
        try:
            async with asyncio.timeout(most_s):
                return await asyncio.shield(work)
        except TimeoutError:
            log.warning("directory unusable", reason=f"no answer within {most_s} s")
            raise IssuerUnavailable(self.settings.title or self.name) from None

    def _ended(self, work: "asyncio.Future[Identity | None]") -> None:
        self._under_way -= 1
        if not work.cancelled():
            work.exception()  # seen: who waited for it may have gone

    # -- in a thread -----------------------------------------------------------------------

    def _ask(self, name: str, password: str) -> Identity | None:
        for url in self.settings.servers:
            try:
                return self._ask_server(url, name, password)
            except (
                ldap3.core.exceptions.LDAPException,
                OSError,
                ValueError,
                _UnusableServer,
            ) as error:
                reason = str(error) or type(error).__name__
                log.warning("directory unusable", server=url, reason=reason[:500])
        raise IssuerUnavailable(self.settings.title or self.name)

    def _ask_server(self, url: str, name: str, password: str) -> Identity | None:
        """Return who it is, by one server. Raises what says that another one may know more."""
        if self.settings.user_dn:
            dn = self.settings.user_dn.replace("{name}", ldap3.utils.dn.escape_rdn(name))
            with self._open(url) as connection:
                if not _binds(connection, dn, password):
                    return None
                found = _entries(connection, dn, ldap3.BASE, "(objectClass=*)", self._attributes())
                if not found:
                    raise _UnusableServer("it does not show people their own entry")
                return self._identity(connection, found[0])
        with self._open(url) as connection:
            assert self._password is not None, "settings say so"
            if not _binds(connection, self.settings.bind_dn, self._password):
                raise _UnusableServer("it does not accept bind_dn with its password")
            text = self.settings.user_filter.replace(
                "{name}", ldap3.utils.conv.escape_filter_chars(name)
            )
            base = self.settings.base_dn
            found = _entries(connection, base, ldap3.SUBTREE, text, self._attributes(), most=2)
            if len(found) != 1:
                if found:
                    log.warning("directory has several people of one name", filter=text)
                return None
            with self._open(url) as another:
                if not _binds(another, found[0][0], password):
                    return None
            return self._identity(connection, found[0])

    @contextmanager
    def _open(self, url: str) -> Iterator[ldap3.Connection]:
        parts = urlsplit(url)
        is_tls = parts.scheme == "ldaps"
        server = ldap3.Server(
            parts.hostname,
            port=parts.port or (636 if is_tls else 389),
            use_ssl=is_tls,
            tls=self._tls,
            get_info=ldap3.NONE,
            connect_timeout=self.settings.timeout_s,
        )
        connection = ldap3.Connection(
            server,
            authentication=ldap3.SIMPLE,
            user="unused",  # the library wants one; each bind says its own
            password=b"unused",
            auto_referrals=False,
            receive_timeout=max(1, round(self.settings.timeout_s)),
            read_only=True,
            check_names=False,
        )
        try:
            connection.open(read_server_info=False)
            if not is_tls and not connection.start_tls(read_server_info=False):
                raise _UnusableServer("it does not encrypt the connection")
            yield connection
        finally:
            connection.unbind()
            if connection.socket is not None:  # the library leaves one that it could not use
                connection.socket.close()

    def _attributes(self) -> list[str]:
        used = self.settings
        named = (used.id_attribute, used.name_attribute, used.full_name_attribute)
        return [name for name in dict.fromkeys([*named, used.groups_attribute]) if name]

    def _identity(self, connection: ldap3.Connection, entry: _Entry) -> Identity:
        dn, values = entry
        subject = _id(values, self.settings.id_attribute)
        if not is_subject(subject):
            raise _UnusableServer(f"{self.settings.id_attribute} of {dn} is not an id")
        return Identity(
            issuer=self.issuer,
            subject=subject,
            name=_text(values, self.settings.name_attribute) or None,
            full_name=_text(values, self.settings.full_name_attribute),
            groups=frozenset(map(normal_dn, self._groups(connection, dn, values))),
        )

    def _groups(
        self, connection: ldap3.Connection, dn: str, values: Mapping[str, Any]
    ) -> list[str]:
        if not self.settings.group_base_dn:
            return _texts(values, self.settings.groups_attribute)
        text = self.settings.group_filter.replace("{dn}", ldap3.utils.conv.escape_filter_chars(dn))
        base = self.settings.group_base_dn
        found = _entries(connection, base, ldap3.SUBTREE, text, ["1.1"], most=_MOST_GROUPS)
        return [dn for dn, _ in found]


def normal_dn(dn: str) -> str:
    """Return a DN as two that are the same are written alike. Raises ValueError."""
    try:
        parts = ldap3.utils.dn.parse_dn(dn, escape=False, strip=True)
    except ldap3.core.exceptions.LDAPException as error:
        raise ValueError(f"{dn!r} is not a DN") from error
    return ",".join(f"{name.strip()}={value.strip()}".casefold() for name, value, _ in parts)


def _binds(connection: ldap3.Connection, dn: str, password: str) -> bool:
    """Say whether a bind succeeds. Raises _Unusable if the server could not judge it.

    The password goes as bytes: the library would prepare a text, and that can leave nothing of it.
    """
    connection.user, connection.password = dn, password.encode()
    connection.bind(read_server_info=False)
    result = connection.result or {}
    if result.get("description") in ("busy", "unavailable", "referral"):
        raise _UnusableServer(f"it is {result['description']}")
    return bool(result.get("result", -1) == _SUCCESS)


def _entries(
    connection: ldap3.Connection,
    base: str,
    scope: str,
    text: str,
    attributes: list[str],
    most: int = 1,
) -> list[_Entry]:
    """Return DN and values of what a search finds. Raises _Unusable."""
    connection.search(
        base,
        text,
        scope,
        attributes=attributes,
        size_limit=most,
        time_limit=max(1, round(connection.receive_timeout)),
    )
    result = connection.result or {}
    if result.get("description") not in ("success", "noSuchObject", "sizeLimitExceeded"):
        raise _UnusableServer(f"it refuses a search: {result.get('description')}")
    return [
        (one["dn"], one["raw_attributes"])
        for one in connection.response or ()
        if one.get("type") == "searchResEntry"
    ]


def _raw(values: Mapping[str, Any], name: str) -> list[bytes]:
    found = next((value for key, value in values.items() if key.lower() == name.lower()), ())
    return list(found)


def _texts(values: Mapping[str, Any], name: str) -> list[str]:
    return [one.decode(errors="replace") for one in _raw(values, name)]


def _text(values: Mapping[str, Any], name: str) -> str:
    found = _texts(values, name)
    return found[0] if found else ""


def _id(values: Mapping[str, Any], name: str) -> str:
    """Return an id as text; the binary ones of Active Directory in hexadecimal digits."""
    found = _raw(values, name)
    if len(found) != 1:
        return ""
    if name.lower() == "objectguid":
        return found[0].hex()
    return found[0].decode(errors="replace")
