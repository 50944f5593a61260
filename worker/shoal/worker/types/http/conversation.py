"""All requests of one attempt: the first one, its redirects, and those of ``poll``."""

import asyncio

from shoal.core.timing.durations import format_duration
from shoal.worker.types.child.outcome import WorkFailed
from shoal.worker.types.child.work import Work
from shoal.worker.types.http.answer import HttpAnswer, Unusable, as_text
from shoal.worker.types.http.checks import has_status, missed
from shoal.worker.types.http.disclosure import Shown
from shoal.worker.types.http.failures import Fate, may_pass, retry_after
from shoal.worker.types.http.kind import HttpParams, Poll
from shoal.worker.types.http.request import (
    REDIRECTS,
    HttpRequest,
    first_request,
    led_to,
    redirected,
)
from shoal.worker.types.http.values import Source
from shoal.worker.types.http.wire.exchange import BODY_FILE, Exchange, NoAnswer


class Conversation:
    """Asks until there is an answer to judge."""

    def __init__(
        self, work: Work[HttpParams], exchange: Exchange, shown: Shown, fate: Fate
    ) -> None:
        self._work, self._params = work, work.params
        self._exchange, self._shown, self._fate = exchange, shown, fate
        self._still = ""  # what has not come true yet
        self._said = ""  # the last line about polling

    @property
    def doing(self) -> str:
        """What it is at, for people."""
        parts = (self._exchange.doing, self._still)
        return self._shown.line("; ".join(part for part in parts if part))

    async def hold(self) -> HttpAnswer:
        """Return the last answer. Raises NoAnswer, AddressRefused, WorkFailed, SearchTooSlow."""
        request = first_request(self._params, self._work.tag)
        poll = self._params.poll
        if poll is None:
            return await self._ask(request)
        if poll.url_from is not None:
            request = self._follow(request, await self._ask(request), poll.url_from)
        return await self._poll(request, poll)

    async def _ask(self, request: HttpRequest, *, quietly: bool = False) -> HttpAnswer:
        """Return the answer to a request, after its redirects."""
        for _ in range(self._params.follow_redirects + 1):
            if not quietly:
                self._work.log(self._shown.request(request))
            answer = await self._exchange.send(request)
            if not quietly:
                self._work.log(self._shown.answer(answer))
            if request.method == self._params.method:
                self._fate.answered(answer.status)
            target = answer.headers.get("location")
            follows = self._params.follow_redirects > 0 and target is not None
            if answer.status not in REDIRECTS or target is None or not follows:
                return answer
            request = redirected(request, answer.status, target)
        text = f"more than {self._params.follow_redirects} redirects"
        raise WorkFailed(text, permanent=True)

    # -- polling ------------------------------------------------------------------------------

    def _follow(self, request: HttpRequest, answer: HttpAnswer, url_from: str) -> HttpRequest:
        """Return the request that asks for what the first answer names."""
        if not has_status(answer, None):
            show_body(self._work, self._shown, answer)
            text = f"the status is {answer.status}, not 2xx{advice(answer, self._shown)}"
            raise self._fate.failure(text, may_pass=may_pass(answer.status))
        try:
            target = as_text(answer.value(Source.read(url_from), self._work.folder / BODY_FILE))
        except Unusable as error:
            show_body(self._work, self._shown, answer)
            raise self._fate.failure(f"url_from: {error}", may_pass=True) from error
        return led_to(request, target, method="GET")

    async def _poll(self, request: HttpRequest, poll: Poll) -> HttpAnswer:
        asked = 0
        while True:
            asked += 1
            wait_s = poll.every
            try:
                answer = await self._ask(request, quietly=asked > 1)
            except NoAnswer as error:
                if not error.may_pass:
                    raise
                self._still = str(error)
            else:
                problem = missed(poll.until, answer)
                if problem is None:
                    self._say(asked, self._shown.answer(answer))
                    return answer
                self._require_hope(poll, answer, problem)
                self._still = problem
                wait_s = max(wait_s, retry_after(answer.headers) or 0.0)
            self._say(asked, self._still)
            if asked == poll.at_most:
                text = f"poll: asked {asked} times, and still {self._still}"
                raise self._fate.failure(text, may_pass=True)
            self._work.progress(asked, poll.at_most, "requests")
            self._exchange.doing = f"waiting to ask for the {asked + 1}. time"
            await asyncio.sleep(wait_s)

    def _require_hope(self, poll: Poll, answer: HttpAnswer, problem: str) -> None:
        """Raise WorkFailed if asking again is in vain: an error that ``until`` does not expect."""
        if not may_pass(answer.status) and poll.until.status is None:
            show_body(self._work, self._shown, answer)
            text = f"poll: the status is {answer.status}, and {problem}"
            raise WorkFailed(text + advice(answer, self._shown), permanent=True)

    def _say(self, asked: int, what: str) -> None:
        """Write a line about polling; the same again is not worth one."""
        if what != self._said:
            self._said = what
            self._work.log(f"request {asked}: {self._shown.line(what)}")


def show_body(work: Work[HttpParams], shown: Shown, answer: HttpAnswer) -> None:
    """Write the beginning of the answer's body into the log."""
    try:
        for line in shown.preview(answer):
            work.log(line)
    except OSError as error:
        work.log(f"the body cannot be shown: {error.strerror}")


def advice(answer: HttpAnswer, shown: Shown) -> str:
    """Return what else people want to know about a status that is not good."""
    if answer.status in REDIRECTS and "location" in answer.headers:
        target = shown.line(answer.headers["location"])
        return f"; it leads to {target}: follow_redirects says how many redirects are followed"
    wait_s = retry_after(answer.headers)
    if wait_s is not None:
        return f"; the server asks to wait for {format_duration(wait_s)}: see retry_delay"
    return ""
