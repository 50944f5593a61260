"""A small OpenID provider on loopback: as the standards say, unless a test has it do otherwise.

Its ``sign_in`` is what a person does there in a browser.
"""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

from tests.support.servers.http_server import HttpServer, Received, answer, says

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

CLIENT, SECRET = "shoal", "s3cret-of-the-client"
DISCOVERY = "/.well-known/openid-configuration"


@dataclass
class _Code:
    """What was signed in for, until somebody comes with it."""

    challenge: str
    redirect_uri: str
    claims: dict[str, Any]


@dataclass
class OpenIdProvider:
    """Serves one client. Fields from ``metadata`` on are how it misbehaves."""

    server: HttpServer
    secret: str | None = SECRET
    key: ECKey = field(default_factory=lambda: _new_key())
    codes: dict[str, _Code] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)  # None: left out
    claims: dict[str, Any] = field(default_factory=dict)  # the same
    sign: Callable[[dict[str, Any]], str] | None = None
    keys: list[dict[str, Any]] = field(default_factory=list)  # further ones
    takes_codes_again: bool = False
    checks_pkce: bool = True

    def __post_init__(self) -> None:
        self.server.handlers.update(
            {DISCOVERY: self._discovery, "/jwks": self._jwks, "/token": self._token}
        )

    @property
    def issuer(self) -> str:
        """As it is in tokens."""
        return self.server.url

    def asked(self, path: str) -> int:
        """Say how often a path was asked for."""
        return sum(one.target == path for one in self.server.received)

    def rotate(self) -> None:
        """Sign with another key from now on; the former one is gone."""
        self.key = _new_key()

    def sign_in(self, url: str, subject: str, **claims: Any) -> dict[str, str]:
        """Sign in where a browser was led to; return what it is led back with."""
        parts = urlsplit(url)
        assert f"{parts.scheme}://{parts.netloc}" == self.server.url
        assert parts.path == "/authorize"
        asked = {name: value for name, [value] in parse_qs(parts.query).items()}
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        assert "openid" in asked["scope"].split()
        assert asked["code_challenge_method"] == "S256"
        code, now = secrets.token_urlsafe(), int(time.time())
        whole = {
            "iss": self.issuer,
            "sub": subject,
            "aud": CLIENT,
            "exp": now + 300,
            "iat": now,
            "nonce": asked["nonce"],
            **claims,
        }
        self.codes[code] = _Code(asked["code_challenge"], asked["redirect_uri"], whole)
        return {"code": code, "state": asked["state"], "session_state": "x"}

    def signed(self, claims: dict[str, Any]) -> str:
        """Return an ID token, as it should be."""
        return jwt.encode({"alg": "ES256", "kid": self.key.kid}, claims, self.key)

    def unsigned(self, claims: dict[str, Any]) -> str:
        """Return an ID token that says that it needs no signature."""
        return f"{_part({'alg': 'none', 'kid': self.key.kid})}.{_part(claims)}."

    def signed_with_public_key(self, claims: dict[str, Any]) -> str:
        """Return an ID token whose HMAC has the public key for a secret."""
        return self.signed_with_secret(self.key.as_pem(private=False), claims)

    def signed_with_secret(self, secret: bytes, claims: dict[str, Any], kid: str = "") -> str:
        """Return an ID token with an HMAC."""
        head = {"alg": "HS256", "kid": kid or self.key.kid}
        text = f"{_part(head)}.{_part(claims)}"
        return f"{text}.{_base64(hmac.new(secret, text.encode(), hashlib.sha256).digest())}"

    # -- answering -------------------------------------------------------------------------

    async def _discovery(self, received: Received, writer: "asyncio.StreamWriter") -> None:
        base = self.server.url
        found = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{base}/authorize",
            "token_endpoint": f"{base}/token",
            "jwks_uri": f"{base}/jwks",
            "end_session_endpoint": f"{base}/logout",
            **self.metadata,
        }
        await _json({k: v for k, v in found.items() if v is not None})(received, writer)

    async def _jwks(self, received: Received, writer: "asyncio.StreamWriter") -> None:
        await _json({"keys": [self.key.as_dict(private=False), *self.keys]})(received, writer)

    async def _token(self, received: Received, writer: "asyncio.StreamWriter") -> None:
        status, found = self._tokens(received)
        await _json(found, status)(received, writer)

    def _tokens(self, received: Received) -> tuple[int, dict[str, Any]]:
        form = {name: value for name, [value] in parse_qs(received.body.decode()).items()}
        if self.secret is not None:
            wanted = base64.b64encode(f"{CLIENT}:{self.secret}".encode()).decode()
            if received.headers.get("authorization") != f"Basic {wanted}":
                return 401, {"error": "invalid_client"}
        elif form.get("client_id") != CLIENT:
            return 401, {"error": "invalid_client"}
        take = self.codes.get if self.takes_codes_again else self.codes.pop
        code = take(form["code"], None)
        made = _base64(hashlib.sha256(form["code_verifier"].encode()).digest())
        if code is None or code.redirect_uri != form["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        if self.checks_pkce and made != code.challenge:
            return 400, {"error": "invalid_grant"}
        claims = {k: v for k, v in {**code.claims, **self.claims}.items() if v is not None}
        token = (self.sign or self.signed)(claims)
        return 200, {"access_token": "at", "token_type": "Bearer", "id_token": token}


@asynccontextmanager
async def openid_provider() -> "AsyncIterator[OpenIdProvider]":
    """Serve a provider for as long as the block lasts."""
    async with HttpServer() as server:
        yield OpenIdProvider(server)


def callback(path: str, query: dict[str, str]) -> str:
    """Return the address that a browser is led back to."""
    return f"{path}?{urlencode(query)}"


def _json(found: dict[str, Any], status: int = 200) -> Any:
    return says(answer(status, json.dumps(found), Content_Type="application/json"))


def _new_key() -> ECKey:
    return ECKey.generate_key("P-256", auto_kid=True)


def _part(value: dict[str, Any]) -> str:
    return _base64(json.dumps(value).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
