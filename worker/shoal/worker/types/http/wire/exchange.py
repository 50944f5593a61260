"""One request and its answer, on a connection of its own."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import certifi
import httpcore
import httpx

from shoal.core.errors import ShoalError
from shoal.runtime.outbound.addresses import AddressPolicy
from shoal.runtime.outbound.guard import GuardedBackend, Proxy, numeric, require_allowed
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.http.answer import HttpAnswer
from shoal.worker.types.http.request import HttpRequest
from shoal.worker.types.http.wire.body import BodyFile, BodyRefused

BODY_FILE = "answer"  # in the attempt's folder
_SENDING = "http11.send_request_headers.started"


class NoAnswer(ShoalError):
    """There is no whole answer. ``may_pass``: there may be one another time."""

    def __init__(self, text: str, *, may_pass: bool = True) -> None:
        self.may_pass = may_pass
        super().__init__(text)


@dataclass(frozen=True)
class Ways:
    """How servers are reached, and by which ``authorities`` in PEM they are verified: empty for
    those of the system.
    """

    policy: AddressPolicy
    proxy: Proxy | None = None
    authorities: str = ""

    @cached_property
    def tls(self) -> ssl.SSLContext:
        """How servers are verified. Raises WorkFailed."""
        return tls_context(self.authorities)  # slow, so only where it is needed

    def pool(self, url: httpx.URL) -> httpcore.AsyncConnectionPool:
        """Return what opens a connection for ``url``. Raises AddressRefused, WorkFailed."""
        host = url.raw_host.decode("ascii")
        proxy = self.proxy if self.proxy is not None and self.proxy.is_for(host) else None
        if proxy is not None and (address := numeric(host)) is not None:
            require_allowed(self.policy, host, address)  # other names are the proxy's to look up
        return httpcore.AsyncConnectionPool(
            ssl_context=self.tls if url.scheme == "https" else None,
            proxy=_proxy(proxy) if proxy is not None else None,
            network_backend=GuardedBackend(self.policy, proxy),
        )


@dataclass(frozen=True)
class Limits:
    """Of a body. ``is_download``: it is kept as it comes, and hashed."""

    most_bytes: int
    is_download: bool


class Exchange:
    """Sends requests. ``sent`` is called when one is leaving, ``received`` as the body comes with
    its bytes so far and in all, as far as that is known.
    """

    def __init__(
        self,
        ways: Ways,
        folder: Path,
        limits: Limits,
        *,
        sent: Callable[[], object],
        received: Callable[[int, int | None], object],
    ) -> None:
        self._ways, self._path, self._limits = ways, folder / BODY_FILE, limits
        self._sent, self._received = sent, received
        #: What it is doing, for people.
        self.doing = ""

    async def send(self, request: HttpRequest) -> HttpAnswer:
        """Return the whole answer; its body is there until the next request.

        Raises NoAnswer, AddressRefused.
        """
        self.doing = f"connecting to {request.url.host}"
        try:
            pool = self._ways.pool(request.url)
            async with (
                pool,
                pool.stream(
                    request.method,
                    _target(request),
                    headers=_headers(request),
                    content=request.content,
                    extensions={"trace": self._trace},
                ) as response,
            ):
                return await self._receive(request, response)
        except (httpcore.NetworkError, httpcore.TimeoutException) as error:
            raise _broken(error, request.url.host) from error
        except httpcore.LocalProtocolError as error:  # its text may show headers
            raise NoAnswer("the request cannot be sent", may_pass=False) from error
        except (httpcore.ProtocolError, httpcore.ProxyError) as error:
            raise NoAnswer(f"{request.url.host}: {error}") from error
        except BodyRefused as error:
            raise NoAnswer(str(error), may_pass=False) from error
        except OSError as error:
            raise NoAnswer(f"cannot store the body: {error.strerror}") from error

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event == _SENDING and info["request"].method != b"CONNECT":
            self.doing = "waiting for the answer"
            self._sent()

    async def _receive(self, request: HttpRequest, response: httpcore.Response) -> HttpAnswer:
        headers = _by_name(response.headers)
        encoding = "" if self._limits.is_download else headers.get("content-encoding", "")
        total = _length(request, response.status, headers)
        most, hashed = self._limits.most_bytes, self._limits.is_download
        with BodyFile(self._path, most, encoding, hashed=hashed) as body:
            body.require_room(total or 0)
            async for chunk in response.aiter_stream():
                body.add(chunk)
                self.doing = f"receiving the body, {body.size:,} bytes so far"
                self._received(body.size, None if encoding else total)
            body.finish()
        return HttpAnswer(
            response.status,
            response.extensions.get("reason_phrase", b"").decode("latin-1"),
            headers,
            self._path,
            body.size,
            body.sha256,
        )


def tls_context(authorities: str = "") -> ssl.SSLContext:
    """Return how servers are verified: by ``authorities`` in PEM, else by those of the system.

    Made by hand: the usual way lets a variable of the environment have all keys written to a file.
    Raises WorkFailed.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if not authorities:
        context.load_default_certs()
        if not context.cert_store_stats()["x509_ca"] and not _has_folder_of_authorities():
            context.load_verify_locations(certifi.where())
        return context
    try:
        context.load_verify_locations(cadata=authorities)
    except (ssl.SSLError, ValueError):
        text = "ca_certificate: no certificate can be read from it"
        raise WorkFailed(text, permanent=True) from None
    return context


def _has_folder_of_authorities() -> bool:
    """Return whether the system has certificates that are read when they are needed."""
    folder = ssl.get_default_verify_paths().capath
    return folder is not None and any(Path(folder).glob("*.0"))


def _proxy(proxy: Proxy) -> httpcore.Proxy:
    host, port = proxy.address
    url = httpcore.URL(scheme="http", host=host, port=port, target="/")
    return httpcore.Proxy(url, auth=proxy.credentials)


def _target(request: HttpRequest) -> httpcore.URL:
    url = request.url
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def _headers(request: HttpRequest) -> list[tuple[bytes, bytes]]:
    headers = {
        "Host": request.url.netloc.decode("ascii"),
        "Accept-Encoding": "identity",
        "Connection": "close",
        **request.headers,
    }
    if request.content is not None or request.method in ("POST", "PUT", "PATCH"):
        headers["Content-Length"] = str(len(request.content or b""))
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]


def _length(request: HttpRequest, status: int, headers: Mapping[str, str]) -> int | None:
    """Return how many bytes are to come; None if the server does not say."""
    if request.method == "HEAD" or status in (204, 304):
        return 0  # what it says is about another answer
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _by_name(headers: list[tuple[bytes, bytes]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _broken(error: Exception, host: str) -> NoAnswer:
    found: BaseException | None = error
    while found is not None:
        if isinstance(found, ssl.SSLCertVerificationError):
            return NoAnswer(
                f"{host}: its certificate is not trusted: {found.verify_message}; give the "
                "authority that has signed it in ca_certificate",
                may_pass=False,
            )
        if isinstance(found, ssl.SSLError):
            return NoAnswer(f"{host}: no TLS connection: {found.reason or 'it was refused'}")
        found = found.__cause__ or found.__context__
    if isinstance(error, httpcore.ConnectError | httpcore.ConnectTimeout):
        return NoAnswer(f"cannot connect to {host}: {error}")
    return NoAnswer(f"{host}: the connection broke before the whole answer was there")
