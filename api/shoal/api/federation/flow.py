"""The way of a browser to a provider and back.

One secret in a cookie of the browser makes the rest: state, nonce and code verifier are derived
from it, so that nothing is stored before a user has really signed in, and any API process can
go on. Without the cookie an answer of the provider is worth nothing in another browser.

The way ends at a page of this API, not at a redirect: a browser sends the session's cookie with
requests of our own pages only, not when another site leads to ours.
"""

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from html import escape
from typing import Any
from urllib.parse import urlencode

from shoal.core.access.pkce import number_of
from shoal.core.untrusted import read_json

COOKIE = "__Host-shoal-sign-in"
LASTS_S = 600  # to sign in at the provider
CODE_LASTS_S = 60  # of the code that a command line gets, to change it into a session
_LONGEST_PATH, _LONGEST_COOKIE = 500, 3000


@dataclass(frozen=True)
class WaitingCommand:
    """A command that waits on this machine's loopback (RFC 8252): ``challenge`` is of its PKCE."""

    port: int
    state: str
    challenge: str

    @property
    def shown(self) -> str:
        """What the command and the page both show, so that people see that they belong together."""
        return number_of(self.challenge)


@dataclass(frozen=True)
class Flow:
    """One sign-in that is under way. ``expires_s``: since 1970."""

    secret: str
    provider: str
    return_to: str
    expires_s: int
    command_line: WaitingCommand | None = None

    @property
    def state(self) -> str:
        """What the provider returns: it has to come from the browser that was sent there."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """What has to be in the ID token: it was made for this sign-in."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """What changes the provider's code into tokens (PKCE, RFC 7636)."""
        return self._derived("verifier")

    @property
    def code(self) -> str:
        """What the command line gets."""
        return self._derived("code")

    def _derived(self, what: str) -> str:
        made = hmac.new(self.secret.encode(), what.encode(), hashlib.sha256).digest()
        return _base64(made)


def new_flow(
    provider: str, return_to: str, now_s: float, command_line: WaitingCommand | None = None
) -> Flow:
    """Return a sign-in that begins now."""
    secret = secrets.token_urlsafe(32)
    return Flow(secret, provider, return_to, int(now_s) + LASTS_S, command_line)


def to_cookie(flow: Flow) -> str:
    """Return what the browser keeps meanwhile."""
    line = flow.command_line
    fields = [flow.secret, flow.provider, flow.return_to, flow.expires_s]
    rest = [] if line is None else [line.port, line.state, line.challenge]
    return _base64(json.dumps([*fields, *rest], separators=(",", ":")).encode())


def from_cookie(text: str, now_s: float) -> Flow | None:
    """Return the sign-in of a cookie; None: it is none of ours, or too late.

    The browser could have written it anew. What it says is checked as if it came with a request.
    """
    if len(text) > _LONGEST_COOKIE:
        return None
    try:
        found: Any = read_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        secret, provider, return_to, expires_s, *rest = found
        line = WaitingCommand(*rest) if rest else None
    except (binascii.Error, ValueError, TypeError):
        return None
    texts = [secret, provider, return_to, *((line.state, line.challenge) if line else ())]
    if not all(isinstance(one, str) for one in texts) or type(expires_s) is not int:
        return None
    if line is not None and not (type(line.port) is int and 0 < line.port < 65536):
        return None
    flow = Flow(secret, provider, return_to, expires_s, line)
    is_ours = len(secret) >= 43 and is_own_path(return_to)
    return flow if is_ours and now_s < expires_s <= now_s + LASTS_S else None


def is_own_path(text: str) -> bool:
    """Say whether an address is a path of this API, which no browser takes for another site."""
    return (
        0 < len(text) <= _LONGEST_PATH
        and text.startswith("/")
        and not text.startswith("//")
        and "\\" not in text
        and text.isascii()
        and text.isprintable()
        and " " not in text
    )


def is_same(one: str, other: str) -> bool:
    """Compare two secrets, in a time that tells nothing."""
    return hmac.compare_digest(one.encode(), other.encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Shoal</title>{head}</head>
<body>{body}</body>
</html>
"""


def leads_on(path: str) -> str:
    """Return a page that leads to a path of ours."""
    to = escape(path, quote=True)
    return _PAGE.format(
        head=f'<meta http-equiv="refresh" content="0;url={to}">',
        body=f'<p>You are signed in. <a href="{to}">Go on</a></p>',
    )


def asks(command_line: WaitingCommand, code: str) -> str:
    """Return a page that gives a command its code, if the person says that it is theirs.

    Another user of the machine could have begun it, and have led the browser here.
    """
    query = urlencode({"code": code, "state": command_line.state})
    to = escape(f"http://127.0.0.1:{command_line.port}/?{query}", quote=True)
    return _PAGE.format(
        head="",
        body="<p>A command on this machine wants to sign in as you. Go on only if you have just "
        "begun <code>shoal login</code>, and it shows the number "
        f'<b>{command_line.shown}</b>.</p><p><a href="{to}">Sign the command in</a></p>',
    )
