"""A ZooKeeper server that takes clients over TLS with SASL, and what its clients need.

``access(address)`` has the options of ``ZkSession`` for any server of the tests: there are none
for one in clear. So a test runs on both without knowing which it has.
"""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from shoal.client.local.java import Java
from shoal.client.local.zookeeper import HOST, JARS, ZooKeeperServer, free_port
from shoal.coordination import Tls
from tests.support.servers.authority import Authority
from tests.support.servers.proxy import TcpProxy
from tests.support.waiting import DEADLINE_S

USER, PASSWORD = "shoal", 'the "user\'s" password'
CREDENTIAL = f"sasl:{USER}:{PASSWORD}"
#: Further users with their passwords.
OTHERS = {"other": "another", "Jörg": "Straße", "user": "пароль 密码", "quiet": "a,b=c"}
USERS = {USER: PASSWORD, **OTHERS}
_QUORUM_PASSWORD = "between the servers"

NETTY = (
    "netty-buffer",
    "netty-codec-base",
    "netty-common",
    "netty-handler",
    "netty-resolver",
    "netty-transport",
    "netty-transport-classes-epoll",
    "netty-transport-native-unix-common",
    "netty-tcnative-classes",
)


class Security:
    """One authority, what it has signed for servers on this machine, and who may connect."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.authority = Authority()

    @cached_property
    def tls(self) -> Tls:
        """What clients need to trust the servers."""
        files = self.authority.identity(self._folder / "client", "client")
        return Tls(files.ca, files.cert, files.key)

    @cached_property
    def identity(self) -> bytes:
        """Key and certificate of a server, for ``HOST``."""
        files = self.authority.identity(self._folder / "server", HOST)
        return files.key.read_bytes() + files.cert.read_bytes()

    @cached_property
    def listening(self) -> ssl.SSLContext:
        """What a proxy in front of a server needs to pose as one."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        (self._folder / "both.pem").write_bytes(self.identity)
        context.load_cert_chain(self._folder / "both.pem")
        return context

    @property
    def options(self) -> dict[str, Any]:
        """Return the options of ZkSession."""
        return {"tls": self.tls, "credential": CREDENTIAL}


class SecureServer(ZooKeeperServer):
    """A server whose clients come over TLS and authenticate; ``address`` is that of its TLS port.

    ``port`` is in clear and answers four-letter words; what clients ask there is refused as well,
    unless they authenticate.
    """

    def __init__(
        self, data_dir: Path, port: int, java: Java, security: Security, *, heap_mb: int = 128
    ) -> None:
        super().__init__(data_dir, port, java, heap_mb=heap_mb)
        self._jars = JARS + NETTY
        self.security = security
        self.secure_port = free_port()
        _known[self.secure_port] = security

    @property
    def address(self) -> str:
        return f"{HOST}:{self.secure_port}"

    def start(self) -> None:
        if not self.running:
            self.data_dir.mkdir(parents=True, exist_ok=True)
            (self.data_dir / "identity.pem").write_bytes(self.security.identity)
            (self.data_dir / "ca.pem").write_bytes(self.security.authority.pem)
            (self.data_dir / "jaas.conf").write_text(_jaas(), encoding="utf-8")
        super().start()

    def _variables(self) -> dict[str, str]:
        options = "-Djava.security.auth.login.config=jaas.conf -Dfile.encoding=UTF-8"
        return super()._variables() | {"JAVA_TOOL_OPTIONS": options}

    def _config(self) -> str:
        settings = {
            "secureClientPort": self.secure_port,
            "secureClientPortAddress": HOST,
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
            "enforce.auth.enabled": "true",
            "enforce.auth.schemes": "sasl,digest",
            "authProvider.x509": "org.apache.zookeeper.server.auth.X509AuthenticationProvider",
            "ssl.clientAuth": "need",
            **_stores("ssl."),
        }
        return super()._config() + lines(settings)


def quorum_security() -> str:
    """Return the configuration of a server whose peers come over TLS and authenticate."""
    return lines(
        {
            "fips-mode": "false",  # else peers show each other no passwords (DIGEST-MD5)
            "sslQuorum": "true",
            **_stores("ssl.quorum."),
            "quorum.auth.enableSasl": "true",
            "quorum.auth.learnerRequireSasl": "true",
            "quorum.auth.serverRequireSasl": "true",
        }
    )


def lines(settings: dict[str, Any]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _stores(prefix: str) -> dict[str, str]:
    return {
        f"{prefix}keyStore.location": "identity.pem",
        f"{prefix}keyStore.type": "PEM",
        f"{prefix}trustStore.location": "ca.pem",
        f"{prefix}trustStore.type": "PEM",
    }


def _jaas() -> str:
    def section(name: str, **options: str) -> str:
        quoted = (f'{key}="{_escaped(value)}"' for key, value in options.items())
        module = "org.apache.zookeeper.server.auth.DigestLoginModule"
        return f"{name} {{ {module} required {' '.join(quoted)}; }};\n"

    return (
        section("Server", **{f"user_{name}": each for name, each in USERS.items()})
        + section("QuorumServer", user_peer=_QUORUM_PASSWORD)
        + section("QuorumLearner", username="peer", password=_QUORUM_PASSWORD)
    )


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


_known: dict[int, Security] = {}  # by the port on which clients connect


def security_of(address: str) -> Security | None:
    """Return what protects the servers at "host:port,…/chroot"; None if nothing does."""
    ports = (server.rpartition(":")[2] for server in address.partition("/")[0].split(","))
    return next((_known[int(p)] for p in ports if p.isdigit() and int(p) in _known), None)


def access(address: str) -> dict[str, Any]:
    """Return the options of a ZkSession to ``address``, which may be in clear."""
    security = security_of(address)
    return security.options if security else {}


@asynccontextmanager
async def proxy_to(address: str) -> AsyncIterator[TcpProxy]:
    """A proxy to the first server of ``address``, which sees what goes through in clear."""
    host, _, port = address.partition("/")[0].partition(",")[0].rpartition(":")
    security = security_of(address)
    outside = security.listening if security else None
    inside = security.tls.context() if security else None
    async with TcpProxy(host, int(port), outside=outside, inside=inside) as proxy:
        if security:
            _known[proxy.port] = security
        try:
            yield proxy
        finally:
            _known.pop(proxy.port, None)


def stock_client(address: str, **options: Any) -> KazooClient:
    """Return kazoo's own client for ``address``, not started."""
    if security := security_of(address):
        sasl = {"mechanism": "DIGEST-MD5", "username": USER, "password": PASSWORD}
        options = {
            "sasl_options": sasl,
            "use_ssl": True,
            "ca": str(security.tls.ca),
            "certfile": str(security.tls.certificate),
            "keyfile": str(security.tls.key),
            "check_hostname": True,
        } | options
    return KazooClient(hosts=address, **{"timeout": DEADLINE_S} | options)
