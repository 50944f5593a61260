"""What is at an http URL: the answer to a HEAD request, sent as HTTP tasks send theirs."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import httpx

from shoal.runtime.outbound.addresses import AddressPolicy
from shoal.runtime.outbound.guard import AddressRefused, Proxy
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.http.answer import HttpAnswer
from shoal.worker.types.http.failures import may_pass
from shoal.worker.types.http.request import REDIRECTS, HttpRequest, redirected
from shoal.worker.types.http.wire.exchange import Exchange, Limits, NoAnswer, Ways
from shoal.worker.types.wait.kind import WaitFileParams
from shoal.worker.types.wait.remote import StorageTrouble
from shoal.worker.types.wait.verdict import Found

_MOST_REDIRECTS = 5
_NOT_THERE = frozenset({404, 410})
_NO_HEAD = frozenset({405, 501})


async def entries(work: Work[WaitFileParams], url: str) -> list[Found]:
    """Return what is at ``url``. Raises WorkFailed, StorageTrouble."""
    try:
        policy = AddressPolicy.of(work.settings)
    except ValueError as error:
        text = f"the worker's settings http_allow and http_deny: {error}"
        raise WorkFailed(text) from None
    exchange = Exchange(
        Ways(policy, Proxy.of(work.settings)),
        work.folder,
        Limits(1, is_download=True),
        sent=lambda: None,
        received=lambda _done, _total: None,
    )
    try:
        answer = await _ask(exchange, url)
    except NoAnswer as error:
        if error.may_pass:
            raise StorageTrouble(str(error)) from error
        raise WorkFailed(str(error), permanent=True) from error
    except AddressRefused as error:
        raise WorkFailed(str(error), permanent=True) from error
    return _judged(url, answer)


async def _ask(exchange: Exchange, url: str) -> HttpAnswer:
    try:
        request = HttpRequest("HEAD", httpx.URL(url), {"Accept": "*/*", "User-Agent": "shoal"})
    except (httpx.InvalidURL, ValueError, UnicodeError):
        raise WorkFailed(f"url: {url!r} is none", permanent=True) from None
    if not request.url.host or request.url.userinfo:
        text = "url: expected a host, and no user; to sign in use an HTTP task with `poll`"
        raise WorkFailed(text, permanent=True)
    for _ in range(_MOST_REDIRECTS + 1):
        answer = await exchange.send(request)
        target = answer.headers.get("location")
        if answer.status not in REDIRECTS or target is None:
            return answer
        request = redirected(request, answer.status, target)
    raise WorkFailed(f"{url}: more than {_MOST_REDIRECTS} redirects", permanent=True)


def _judged(url: str, answer: HttpAnswer) -> list[Found]:
    if 200 <= answer.status < 300:
        return [Found(url, _size(answer.headers), _changed_at(answer.headers))]
    if answer.status in _NOT_THERE:
        return []
    text = f"{url}: the status is {answer.status}"
    if answer.status in _NO_HEAD:
        text += ": the server has no HEAD; use an HTTP task with `poll`"
        raise WorkFailed(text, permanent=True)
    if may_pass(answer.status):
        raise StorageTrouble(text)
    raise WorkFailed(text, permanent=True)


def _size(headers: Mapping[str, str]) -> int:
    text = headers.get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


def _changed_at(headers: Mapping[str, str]) -> float | None:
    try:
        return parsedate_to_datetime(headers["last-modified"]).timestamp()
    except (KeyError, ValueError, OverflowError):
        return None
