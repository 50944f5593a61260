"""What an attempt's log and reason may show: no secret in any form, nothing that steers a terminal.

The worker masks the values of secrets in logs, outputs and reasons as well. This knows what is
made of them here, such as the text of Basic authentication, which a server may send back.
"""

from collections.abc import Iterable, Iterator
from typing import Self
from urllib.parse import unquote

import httpx

from shoal.worker.logs.secret_forms import forms
from shoal.worker.supervisor.shim.masks import Masker
from shoal.worker.types.http.answer import HttpAnswer
from shoal.worker.types.http.kind import Auth
from shoal.worker.types.http.request import HttpRequest, basic

PREVIEW = 2_000  # characters
_READ_FOR_PREVIEW = 256 * 1024  # bytes: a secret must not be cut before it is recognised
_LONGEST_LINE = 500
_TOLD_HEADERS = ("content-type", "content-encoding", "location", "retry-after")


class Shown:
    """Makes texts fit to be shown."""

    def __init__(self, secrets: Iterable[str]) -> None:
        texts = list(secrets)
        # A URL may have parts of one that look as if they were encoded; people see it decoded.
        self._masker = Masker(forms([*texts, *(unquote(text) for text in texts)]))

    @classmethod
    def of(cls, secrets: Iterable[str], auth: Auth | None) -> Self:
        """Return it for a task's secrets; a password counts as one, and so does a token."""
        texts = list(secrets)
        if auth is not None:
            texts += filter(None, (auth.password, auth.bearer))
            if auth.user is not None:
                sent = basic(auth.user, auth.password)
                texts += [sent, sent.rstrip("=")]
        return cls(texts)

    def masked(self, text: str) -> str:
        """Return ``text`` without secrets."""
        return self._masker.mask(text)

    def line(self, text: str, most: int = _LONGEST_LINE) -> str:
        """Return ``text`` in one line."""
        plain = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
        masked = self.masked(plain)
        return masked if len(masked) <= most else f"{masked[:most]}…"

    def url(self, url: httpx.URL) -> str:
        """Return a URL as people write it."""
        bare = str(url.copy_with(userinfo=b""))
        return self.line(unquote(self.masked(bare)))

    def request(self, request: HttpRequest) -> str:
        """Return the request line, and which headers there are; their values may be keys."""
        names = ", ".join(sorted(name.lower() for name in request.headers))
        return f"{request.method} {self.url(request.url)} ({names})"

    def answer(self, answer: HttpAnswer) -> str:
        """Return the status line, and of the headers those that say what has come."""
        told = [answer.headers[name] for name in _TOLD_HEADERS if name in answer.headers]
        parts = [f"{answer.status} {answer.reason}".strip(), *told, f"{answer.size:,} bytes"]
        return self.line(", ".join(parts))

    def preview(self, answer: HttpAnswer) -> Iterator[str]:
        """Yield the first lines of the body. No line begins as the server would have it."""
        with answer.body.open("rb") as file:
            content = file.read(_READ_FOR_PREVIEW)
        if not content:
            return
        if b"\0" in content[:PREVIEW]:
            yield "| (not shown: it is not text)"
            return
        text = self.masked(content.decode("utf-8", "replace"))
        for line in text[:PREVIEW].splitlines():
            yield f"| {self.line(line, PREVIEW)}"
        if len(text) > PREVIEW:
            yield "| …"
