"""An OpenID provider: where it is, what its keys are, and who has signed in there.

OpenID Connect Core 1.0 with the authorization code flow, PKCE (RFC 7636) and RFC 9207.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urlencode

import httpx
import structlog
from authlib.oauth2.client import OAuth2Client
from authlib.oauth2.rfc6749.parameters import prepare_token_request
from joserfc.jwk import KeySet

from shoal.api.federation.errors import BadAnswer, IssuerUnavailable, SignInFailed
from shoal.api.federation.flow import Flow
from shoal.api.federation.id_token import ExpectedClaims, UnknownSigningKey, claims_of, public_keys
from shoal.api.federation.identity import Identity, IssuerRules
from shoal.api.settings import OidcSettings
from shoal.core.untrusted import read_json
from shoal.runtime.settings import require_encryption

log = structlog.get_logger()

T = TypeVar("T")

KEPT_S = 3600.0  # what a provider says about itself
KEYS_AGAIN_S = 10.0  # between two looks for a key that is not known
DOWN_S = 2.0  # time without a new request after a failure
_MOST_GROUPS = 5000
_END_SESSION = "end_session_endpoint"
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class _Metadata:
    """What discovery says (OpenID Connect Discovery 1.0, section 3)."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None
    says_issuer: bool  # with each answer: RFC 9207
    auth_methods: tuple[str, ...]


class Provider:
    """One provider. One event loop; ``client`` belongs to the caller."""

    def __init__(
        self,
        name: str,
        settings: OidcSettings,
        client: httpx.AsyncClient,
        secret: str | None,
        redirect_uri: str,
        *,
        now_s: Callable[[], float],
        clock_s: Callable[[], float] = monotonic,
    ) -> None:
        self.name, self.settings = name, settings
        self._http, self._secret, self._redirect_uri = client, secret, redirect_uri
        self._now_s, self._clock_s = now_s, clock_s
        self.rules = IssuerRules(settings.make_accounts, settings.groups)
        self._metadata: _Metadata | None = None
        self._keys: KeySet | None = None
        self._metadata_until_s = self._keys_until_s = self._keys_again_s = 0.0
        self._down_until_s = 0.0
        self._asking = asyncio.Lock()  # many who come at once ask once

    async def authorization_url(self, flow: Flow) -> str:
        """Return where the browser signs in. Raises IssuerUnavailable."""
        found = await self._found(self._discovered())
        url, _ = self._oauth(found).create_authorization_url(
            found.authorization_endpoint,
            state=flow.state,
            code_verifier=flow.verifier,
            nonce=flow.nonce,
        )
        return str(url)

    async def end_session_url(self, back: str) -> str | None:
        """Return where the session at the provider is ended; None: it offers no such place.

        Raises IssuerUnavailable.
        """
        found = await self._found(self._discovered())
        if found.end_session_endpoint is None:
            return None
        query = {"client_id": self.settings.client_id, "post_logout_redirect_uri": back}
        joint = "&" if "?" in found.end_session_endpoint else "?"
        return found.end_session_endpoint + joint + urlencode(query)

    async def identity(self, flow: Flow, code: str, issuer: str | None) -> Identity:
        """Change the code that a browser brought back into who has signed in.

        ``issuer``: who sent the browser back, as the address says. Raises SignInFailed,
        IssuerUnavailable.
        """
        found = await self._found(self._discovered())
        if issuer != self.settings.issuer and (issuer is not None or found.says_issuer):
            log.warning("sign-in refused", provider=self.name, reason="sent by another issuer")
            raise SignInFailed("the answer comes from another provider; begin again")
        claims = await self._found(self._claims(found, flow, code))
        if claims is None:
            raise SignInFailed("the provider no longer knows this sign-in; start again")
        return self._identity(claims)

    # -- asking ----------------------------------------------------------------------------

    async def _found(self, asking: Awaitable[T]) -> T:
        try:
            return await asking
        except BadAnswer as error:
            log.warning("provider unusable", provider=self.name, reason=str(error))
            raise IssuerUnavailable(self.settings.title or self.name) from error

    async def _discovered(self) -> _Metadata:
        async with self._asking:
            if self._metadata is None or self._clock_s() >= self._metadata_until_s:
                url = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
                issuer = self.settings.issuer
                self._metadata = await self._about(url, lambda said: _metadata(said, issuer))
                self._metadata_until_s = self._clock_s() + KEPT_S
            return self._metadata

    async def _known_keys(self, found: _Metadata) -> KeySet:
        async with self._asking:
            if self._keys is None or self._clock_s() >= self._keys_until_s:
                await self._read_keys(found)
            assert self._keys is not None, "they were read"
            return self._keys

    async def _newer_keys(self, found: _Metadata, known: KeySet) -> KeySet:
        """Return the keys of now. Tokens with made-up key ids cannot cause endless requests."""
        async with self._asking:
            if self._keys is known and self._clock_s() >= self._keys_again_s:
                await self._read_keys(found)
            assert self._keys is not None, "they were read"
            return self._keys

    async def _read_keys(self, found: _Metadata) -> None:
        self._keys_again_s = self._clock_s() + KEYS_AGAIN_S
        self._keys = await self._about(found.jwks_uri, public_keys)
        self._keys_until_s = self._clock_s() + KEPT_S

    async def _claims(self, found: _Metadata, flow: Flow, code: str) -> dict[str, Any] | None:
        """Return the claims of who has signed in; None: the provider refuses the code."""
        tokens = await self._tokens(found, flow, code)
        if tokens is None:
            return None
        id_token, access_token = tokens.get("id_token"), tokens.get("access_token")
        if not isinstance(id_token, str):
            raise BadAnswer("there is no ID token in the answer")
        expected = ExpectedClaims(
            self.settings.issuer,
            self.settings.client_id,
            flow.nonce,
            access_token if isinstance(access_token, str) else "",
            self.settings.algorithms,
        )
        keys = await self._known_keys(found)
        try:
            return claims_of(id_token, keys, expected, self._now_s())
        except UnknownSigningKey:
            keys = await self._newer_keys(found, keys)
        try:
            return claims_of(id_token, keys, expected, self._now_s())
        except UnknownSigningKey:
            raise BadAnswer("the ID token is signed with a key that is none of them") from None

    async def _tokens(self, found: _Metadata, flow: Flow, code: str) -> dict[str, Any] | None:
        body = prepare_token_request(
            "authorization_code",
            code=code,
            redirect_uri=self._redirect_uri,
            code_verifier=flow.verifier,
        )
        client = self._oauth(found)
        auth = client.client_auth(client.token_endpoint_auth_method)
        url, headers, body = auth.prepare("POST", found.token_endpoint, dict(_FORM), body)
        status, answer = await fetch(
            self._http, "POST", url, self.settings.timeout_s, content=body, headers=headers
        )
        if status == 200:
            return answer
        reason = str(answer.get("error"))[:100]
        if status == 400 and reason == "invalid_grant":
            log.warning("sign-in refused", provider=self.name, reason="its code is worth nothing")
            return None
        raise BadAnswer(f"{found.token_endpoint} answered {status}, {reason!r}")

    async def _about(self, url: str, read: Callable[[dict[str, Any]], T]) -> T:
        """Return what the provider says about itself. Many who wait for it wait once."""
        if self._clock_s() < self._down_until_s:
            raise BadAnswer(f"{url} is not asked: the last answer failed a moment ago")
        try:
            status, answer = await fetch(self._http, "GET", url, self.settings.timeout_s)
            if status != 200:
                raise BadAnswer(f"{url} answered {status}")
            return read(answer)
        except BadAnswer:
            self._down_until_s = self._clock_s() + DOWN_S
            raise

    # -- reading ---------------------------------------------------------------------------

    def _oauth(self, found: _Metadata) -> OAuth2Client:
        """Return what writes requests. It sends none."""
        method = "none"
        if self._secret is not None:
            is_in_body = found.auth_methods and "client_secret_basic" not in found.auth_methods
            method = "client_secret_post" if is_in_body else "client_secret_basic"
        return OAuth2Client(
            None,
            self.settings.client_id,
            self._secret,
            token_endpoint_auth_method=method,
            scope=" ".join(self.settings.scopes),
            redirect_uri=self._redirect_uri,
            code_challenge_method="S256",
        )

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        name, full_name = claims.get(self.settings.name_claim), claims.get("name")
        if self.settings.name_claim == "email" and claims.get("email_verified") is not True:
            name = None  # it could be another user's address
        groups = claims.get(self.settings.groups_claim) if self.settings.groups_claim else None
        listed = groups if isinstance(groups, list) else []
        return Identity(
            issuer=self.settings.issuer,
            subject=claims["sub"],
            name=name if isinstance(name, str) else None,
            full_name=full_name if isinstance(full_name, str) else "",
            groups=frozenset(one for one in listed[:_MOST_GROUPS] if isinstance(one, str)),
        )


def _metadata(found: Mapping[str, Any], issuer: str) -> _Metadata:
    """Return what discovery says, for the issuer that was asked. Raises BadAnswer."""
    if found.get("issuer") != issuer:
        raise BadAnswer(f"discovery is of another issuer than {issuer}")
    end_session = found.get("end_session_endpoint")
    methods = found.get("token_endpoint_auth_methods_supported")
    return _Metadata(
        authorization_endpoint=_endpoint(found, "authorization_endpoint"),
        token_endpoint=_endpoint(found, "token_endpoint"),
        jwks_uri=_endpoint(found, "jwks_uri"),
        end_session_endpoint=None if end_session is None else _endpoint(found, _END_SESSION),
        says_issuer=found.get("authorization_response_iss_parameter_supported") is True,
        auth_methods=tuple(methods) if isinstance(methods, list) else (),
    )


def _endpoint(found: Mapping[str, Any], name: str) -> str:
    url = found.get(name)
    try:
        if not isinstance(url, str):
            raise ValueError("it is missing")
        require_encryption(url)
    except ValueError as error:
        raise BadAnswer(f"discovery: {name} cannot be used: {error}") from error
    return url


MOST_BYTES = 256 * 1024
_MOST_CONNECTIONS = 20


def new_client(verify: Any) -> httpx.AsyncClient:
    """Return a client that follows no redirects, and reads nothing from the environment."""
    return httpx.AsyncClient(
        verify=verify,
        trust_env=False,
        follow_redirects=False,
        headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        # None is kept: one that the other side closes meanwhile would make a sign-in fail.
        limits=httpx.Limits(max_connections=_MOST_CONNECTIONS, max_keepalive_connections=0),
    )


async def fetch(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    timeout_s: float,
    *,
    content: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, dict[str, Any]]:
    """Return status and object of an answer, within ``timeout_s`` for all of it.

    Raises BadAnswer.
    """
    try:
        async with (
            asyncio.timeout(timeout_s),
            client.stream(
                method, url, content=content, headers=headers, timeout=timeout_s
            ) as answer,
        ):
            found = read_json(await _read(answer))
    except TimeoutError:
        raise BadAnswer(f"{url} has not answered within {timeout_s} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        raise BadAnswer(f"{url} could not be asked: {reason}") from error
    except ValueError as error:  # of JSON, of UTF-8
        raise BadAnswer(f"{url} gave nothing to be used ({type(error).__name__})") from error
    if not isinstance(found, dict):
        raise BadAnswer(f"{url} gave no JSON object")
    return answer.status_code, found


async def _read(answer: httpx.Response) -> bytes:
    whole = bytearray()
    async for part in answer.aiter_raw():  # nothing is decompressed: that could be endless
        whole += part
        if len(whole) > MOST_BYTES:
            raise BadAnswer(f"{answer.url} gave more than {MOST_BYTES} bytes")
    return bytes(whole)
