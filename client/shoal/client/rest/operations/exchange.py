"""How a request is repeated, and what its answer means: nothing here sends or waits.

``Exchange.steps`` says what to do next; who has a connection does it, at once or asynchronously.
"""

import logging
import random
import ssl
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from shoal.client.errors import TRANSIENT, ApiProblem, ApiUnreachable, FieldProblem, NoCluster
from shoal.client.libraries import httpx
from shoal.runtime.folder_identity import FolderIdentity

log = logging.getLogger("shoal.client")

TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 5.0
RETRY_PAUSES_S = (0.1, 0.3, 1.0)
# Before each attempt to reach an API that is being started; together about a minute.
START_PAUSES_S = (0.2, 0.3, 0.5, 1.0, *(2.0,) * 29)
LONGEST_RETRY_AFTER_S = 10.0  # after it, an error says more than a wait
HEARTBEAT_S = 15.0  # a stream is never quiet for longer, so twice that means it is dead
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
#: Says which data folder a request is for; an API with another one refuses (421).
FOLDER_HEADER = "Shoal-Data-Folder"
_UNKNOWN_AUTHORITY = (
    "if its certificate is from a private authority, name the PEM file of that: `shoal login URL "
    "--ca FILE`, or SHOAL_CA"
)
#: What to do next: send the request (None), or wait for so many seconds.
Step: TypeAlias = float | None
Steps: TypeAlias = Generator[Step, httpx.Response, httpx.Response]


@dataclass(frozen=True)
class ApiAddress:
    """How to reach an API, and what to advise when that fails.

    ``hint`` says what to do when nothing answers, ``refused`` when the token is not accepted; None:
    the API's own words do. ``ca`` is a PEM file of the only authorities that are trusted.
    ``folder`` is the data folder that the API has to have; an API with another one refuses. None:
    any. ``retry_pauses_s``: before each repetition of a request that may be repeated.
    ``start_pauses_s``: before each attempt to reach an API that never answered so far, for one that
    is known to be starting.
    """

    url: str
    hint: str
    refused: str | None = None
    ca: Path | None = None
    folder: Path | None = None
    timeout_s: float = TIMEOUT_S
    retry_pauses_s: Sequence[float] = RETRY_PAUSES_S
    start_pauses_s: Sequence[float] = ()


class ApiExchange:
    """What requests to one API have in common."""

    def __init__(self, address: ApiAddress) -> None:
        self.address, self.url = address, address.url.rstrip("/")
        self._reached = self._said = False

    def options(self, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return what an HTTP client for this API is made with."""
        url = urlsplit(self.url)
        folder = self.address.folder
        if folder is not None and (identity := FolderIdentity.of(folder)):
            headers = {**headers, FOLDER_HEADER: str(identity)}
        is_own = url.hostname in LOOPBACK
        verify: ssl.SSLContext | bool = True
        if self.address.ca is not None:
            verify = _trusting(self.address.ca)
        elif is_own and url.scheme == "http":
            # To read the public authorities takes longer than a request to our own machine, which
            # needs none of them: this trusts no authority.
            verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return {
            "base_url": f"{self.url}/api/v1",
            "headers": {**headers, "User-Agent": "shoal-client"},
            "timeout": httpx.Timeout(self.address.timeout_s, connect=CONNECT_TIMEOUT_S),
            # A proxy for the outside world has no business with our own machine.
            "trust_env": not is_own,
            "verify": verify,
        }

    def steps(self, path: str, *, may_repeat: bool) -> Steps:
        """Yield what to do, get the answer or the error that it led to; return a good answer.

        What the API has refused for now (429) is sent again after the time that it names, since it
        has done nothing. Raises ApiProblem, ApiUnreachable.
        """
        pauses_s = [*(self.address.retry_pauses_s if may_repeat else ()), None]
        starting_s = list(self.address.start_pauses_s)
        jitter = random.uniform(0.8, 1.2)
        refusals = len(self.address.retry_pauses_s)
        while pauses_s:
            try:
                response = yield None
                while refusals and (after_s := _retry_after_s(response)) is not None:
                    refusals -= 1
                    yield after_s * max(1.0, jitter)
                    response = yield None
            except httpx.ConnectError as error:
                if not self._reached and starting_s:  # nothing was sent, so nothing is repeated
                    self._say_that_it_starts()
                    yield starting_s.pop(0) * jitter
                    continue
                # No server is there. One that was there a moment ago may come back.
                pause_s = pauses_s.pop(0)
                if pause_s is None or not self._reached:
                    raise self.unreachable(error) from error
            except httpx.TransportError as error:
                pause_s = pauses_s.pop(0)
                if pause_s is None:
                    raise self.unreachable(error) from error
            else:
                self._reached = True
                pause_s = pauses_s.pop(0)
                if response.is_success or _is_health_report(path, response):
                    return response
                if pause_s is None or response.status_code not in TRANSIENT:
                    raise self.problem(response)
            assert pause_s is not None, "the last round returns or raises"
            yield pause_s * jitter
        raise AssertionError("the last round returns or raises")

    def _say_that_it_starts(self) -> None:
        """Warn once. Without a handler of the caller's, Python writes warnings to stderr."""
        if not self._said:
            self._said = True
            longest_s = sum(self.address.start_pauses_s)
            log.warning("the API at %s is starting; waiting for up to %.0f s", self.url, longest_s)

    def json_of(self, response: httpx.Response) -> Any:
        """Return the JSON of an answer. Raises ApiProblem if it is none."""
        try:
            return response.json()
        except ValueError as error:
            detail = f"the answer of {self.url} is not JSON; is that the address of a Shoal API?"
            raise ApiProblem(response.status_code, "not-json", "No JSON", detail) from error

    def unreachable(self, error: httpx.TransportError) -> ApiUnreachable:
        """Return the error that says that nothing answers."""
        reason = str(error) or type(error).__name__
        is_unknown = "CERTIFICATE_VERIFY_FAILED" in reason
        return ApiUnreachable(
            self.url, reason, _UNKNOWN_AUTHORITY if is_unknown else self.address.hint
        )

    def problem(self, response: httpx.Response) -> ApiProblem:
        """Return the error that an answer describes, the API's own or a proxy's."""
        status = response.status_code
        try:
            document = response.json()
            errors = [
                FieldProblem(str(e.get("field", "")), str(e.get("message", "")))
                for e in document.get("errors") or ()
            ]
            kind = str(document.get("type", "")).rpartition("/")[2]
            title, detail = str(document.get("title", "")), str(document.get("detail", ""))
        except (ValueError, AttributeError):
            errors, kind, title = [], "", response.reason_phrase
            detail = f"{response.url} answers {status} {title}; is that a Shoal API?"
        if status == 401 and self.address.refused is not None:
            detail = f"the API at {self.url} refuses the token: {self.address.refused}"
        if status == 421 and kind == "other-data-folder":
            detail = (
                f"{detail}, {self.address.folder}, in which nothing runs now; {self.address.hint}, "
                "or name the folder of that API with --data"
            )
        return ApiProblem(status, kind, title, detail, errors, _named_s(response))


def _retry_after_s(response: httpx.Response) -> float | None:
    """Return how long to wait after a refusal for now; None: it is none, or it takes too long."""
    after_s = _named_s(response) if response.status_code == 429 else None
    return after_s if after_s is not None and after_s <= LONGEST_RETRY_AFTER_S else None


def _named_s(response: httpx.Response) -> float | None:
    after = response.headers.get("retry-after", "")
    return float(after) if after.isdecimal() and len(after) <= 6 else None


def stream_timeout() -> httpx.Timeout:
    """Return how long a stream may be quiet."""
    return httpx.Timeout(2 * HEARTBEAT_S, connect=CONNECT_TIMEOUT_S)


def in_query(query: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what was given, in the API's spelling."""
    return {k: _spelt(v) for k, v in (query or {}).items() if v is not None and v != []}


def _spelt(value: Any) -> Any:
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date) else value  # a datetime is a date


def _trusting(ca: Path) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise NoCluster(
            f"cannot read the certificates in {ca}: {reason}; expected a PEM file of the API's "
            "authority"
        ) from error


def _is_health_report(path: str, response: httpx.Response) -> bool:
    """A cluster that is not well says so with status 503 and its report."""
    return path == "/health" and response.status_code == 503 and '"checks"' in response.text
