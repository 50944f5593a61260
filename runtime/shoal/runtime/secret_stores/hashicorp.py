"""HashiCorp Vault and OpenBao: the key-value engine, version 2.

Spoken by plain HTTP with httpx: three requests are used, and none of them may carry the token
elsewhere. A redirect is not followed, nothing is read from the environment, an answer has a bound,
and the time is that of the whole look.
"""

import os
import ssl
import stat
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import quote, urlsplit

import httpx
from pydantic import BeforeValidator, Field, field_validator, model_validator

from shoal.core.untrusted import read_json
from shoal.runtime.secret_stores.errors import SecretRefused, StoreUnavailable
from shoal.runtime.secret_stores.store import SecretStore, StoreSettings
from shoal.runtime.settings import InvalidSettings, require_encryption

_MOST_BYTES = 1 << 20
_LONGEST_PAUSE_S = 60.0
_NEW_S = 5.0
_MOST_SAID = 200  # characters
_PASSING = frozenset({408, 412, 429, 472, 473})  # and all from 500 on
_MOUNT = r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$"


File = Annotated[Path | None, BeforeValidator(lambda value: None if value == "" else value)]


class HashicorpSettings(StoreSettings):
    """Where it is and how masters and APIs sign in: by a token, an AppRole, or as a pod."""

    url: str
    mount: str = Field(default="secret", pattern=_MOUNT)  # of the key-value engine
    namespace: str = ""
    ca: File = None  # PEM file of its authority; None: those of the system
    token_file: File = None  # read again when it changes: an agent may renew it
    role_id: str = ""
    secret_id_file: File = None
    kubernetes_role: str = ""
    service_account_token: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
    auth_mount: str = Field(default="", pattern=rf"^$|{_MOUNT}")  # empty: approle, kubernetes

    @field_validator("url")
    @classmethod
    def _url_is_encrypted(cls, value: str) -> str:
        require_encryption(value)
        parts = urlsplit(value)
        if parts.query or parts.fragment:
            raise ValueError("has no query and no fragment")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _one_way_to_sign_in(self) -> Self:
        ways = (self.token_file is not None, bool(self.role_id), bool(self.kubernetes_role))
        if sum(ways) != 1:
            raise ValueError("name one of token_file, role_id and kubernetes_role")
        if bool(self.role_id) != (self.secret_id_file is not None):
            raise ValueError("role_id and secret_id_file belong together")
        return self


@dataclass(frozen=True)
class _Token:
    text: str
    since: float  # of time.monotonic
    until: float  # sign in again then


class Hashicorp(SecretStore[HashicorpSettings]):
    """One server, or one address of several. A reference names path and field."""

    Settings = HashicorpSettings

    def __init__(
        self,
        name: str,
        settings: HashicorpSettings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(name, settings)
        self._clock = clock
        self._signing_in = threading.Lock()
        self._token: _Token | None = None
        # Bad files are reported when a process starts, not when a task needs them.
        try:
            self._trusted = ssl.create_default_context(
                cafile=None if settings.ca is None else str(settings.ca)
            )
        except OSError as error:  # ssl's own errors are, too
            said = error.strerror or str(error)
            raise InvalidSettings(
                f"[cluster.secret_stores.{name}]: ca: the PEM file {settings.ca} cannot be used: "
                f"{said}"
            ) from error

    def field_problem(self, field: str | None) -> str | None:
        """Return what is wrong with the field of a reference."""
        if field is None:
            return f"the store {self.name} needs the field, too: {self.name}:PATH#FIELD"
        return None

    def read(self, path: str, field: str | None) -> str:
        """Return one field of the newest version."""
        assert field is not None, "a reference without one is refused"
        until = self._clock() + self.settings.timeout_s
        where = f"/v1/{self.settings.mount}/data/{quote(path)}"
        token = self._signed_in(until)
        status, found = self._ask("GET", where, until, token=token)
        if status == 403 and (fresh := self._signed_in(until, instead_of=token)) != token:
            status, found = self._ask("GET", where, until, token=fresh)  # the other one had ended
        about = f"{self.name}:{path}"
        if status == 403:
            raise SecretRefused(
                f"{about} cannot be read: the store has denied it; a policy has to allow `read` of "
                f"{self.settings.mount}/data/{path} to what Shoal signs in as, and the token has "
                "to be valid"
            )
        if status == 404:
            raise SecretRefused(f"{about} cannot be read: {self._missing(found)}")
        if status != 200:
            raise SecretRefused(f"{about} cannot be read: the store answers with {status}")
        return self._field(about, found, field)

    def _missing(self, found: Mapping[str, Any]) -> str:
        data = found.get("data")
        if isinstance(data, Mapping) and isinstance(data.get("metadata"), Mapping):
            return "its newest version was deleted"
        return (
            f"there is no such path in {self.settings.mount}; it is written without the mount and "
            "without data/"
        )

    def _field(self, about: str, found: Mapping[str, Any], field: str) -> str:
        data = found.get("data")
        fields = data.get("data") if isinstance(data, Mapping) else None
        if not isinstance(fields, Mapping):
            raise SecretRefused(
                f"{about} cannot be read: {self.settings.mount} answers as no key-value engine of "
                "version 2 does"
            )
        if field not in fields:
            raise SecretRefused(f"{about} has no field {field}")
        if not isinstance(value := fields[field], str):
            raise SecretRefused(f"{about}#{field} is not text; store it as one")
        return value

    # -- signing in ----------------------------------------------------------------------------

    def _signed_in(self, until: float, instead_of: str = "") -> str:
        """Return a token; not ``instead_of``, which was refused, if there can be another one."""
        if self.settings.token_file is not None:
            return self._secret_in(self.settings.token_file)
        if not self._signing_in.acquire(timeout=max(0.0, until - self._clock())):
            raise StoreUnavailable(f"the store {self.name} cannot be signed in at in time")
        try:
            known = self._token
            now = self._clock()
            # One that is new was not refused for having ended.
            has_ended = (
                known is not None and known.text == instead_of and now > known.since + _NEW_S
            )
            if known is None or has_ended or known.until < now:
                self._token = known = self._sign_in(until)
            return known.text
        finally:
            self._signing_in.release()

    def _sign_in(self, until: float) -> _Token:
        settings = self.settings
        if settings.role_id:
            assert settings.secret_id_file is not None
            mount, what = settings.auth_mount or "approle", f"the role {settings.role_id}"
            secret = self._secret_in(settings.secret_id_file)
            body = {"role_id": settings.role_id, "secret_id": secret}
        else:
            mount, what = settings.auth_mount or "kubernetes", settings.kubernetes_role
            jwt = self._secret_in(settings.service_account_token, is_ours=False)
            body = {"role": settings.kubernetes_role, "jwt": jwt}
        status, found = self._ask("POST", f"/v1/auth/{mount}/login", until, body=body)
        if status != 200:
            raise SecretRefused(
                f"the store {self.name} does not let {what} sign in at auth/{mount} ({status}); "
                "see [cluster.secret_stores] of the settings"
            )
        auth = found.get("auth")
        token = auth.get("client_token") if isinstance(auth, Mapping) else None
        lasts = auth.get("lease_duration") if isinstance(auth, Mapping) else None
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise SecretRefused(f"the store {self.name} gives no token at auth/{mount}")
        # Of 0 it lasts for ever; two thirds, so that it does not end under way.
        lasts_s = float(lasts) if isinstance(lasts, int) and lasts > 0 else float("inf")
        now = self._clock()
        return _Token(token, now, now + lasts_s * 2 / 3)

    def _secret_in(self, file: Path, *, is_ours: bool = True) -> str:
        try:
            with file.open(encoding="ascii") as opened:
                mode = os.fstat(opened.fileno()).st_mode
                text = opened.read(_MOST_BYTES).strip()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreUnavailable(
                f"the store {self.name} cannot be signed in at: {file} cannot be read"
            ) from error
        if is_ours and stat.S_IMODE(mode) & 0o037:
            raise SecretRefused(
                f"the store {self.name} is not signed in at: others may read {file}; "
                f"run: chmod 600 '{file}'"
            )
        if not text.isprintable() or not text:
            raise SecretRefused(
                f"the store {self.name} is not signed in at: {file} holds no secret"
            )
        return text

    # -- HTTP ----------------------------------------------------------------------------------

    @cached_property
    def _client(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.settings.url,
            verify=self._trusted,
            trust_env=False,
            follow_redirects=False,  # a token goes to the server of the settings alone
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            # None is kept: one that the other side closes meanwhile would cost a look.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    def _ask(
        self,
        method: str,
        path: str,
        until: float,
        *,
        token: str = "",
        body: Mapping[str, str] | None = None,
    ) -> tuple[int, Mapping[str, Any]]:
        """Return status and object of an answer that may be the last word.

        Raises StoreUnavailable for any other.
        """
        headers = {"X-Vault-Request": "true"}
        if token:
            headers["X-Vault-Token"] = token
        if self.settings.namespace:
            headers["X-Vault-Namespace"] = self.settings.namespace
        left = until - self._clock()
        if left <= 0:
            raise StoreUnavailable(self._late())
        try:
            with self._client.stream(
                method, path, json=body, headers=headers, timeout=left
            ) as answer:
                whole = bytearray()
                for part in answer.iter_raw():  # nothing is decompressed: that could be endless
                    whole += part
                    if len(whole) > _MOST_BYTES:
                        raise StoreUnavailable(f"the store {self.name} answers without an end")
                    if self._clock() > until:
                        raise StoreUnavailable(self._late())
        except httpx.TimeoutException as error:
            raise StoreUnavailable(self._late()) from error
        except httpx.HTTPError as error:
            said = (str(error) or type(error).__name__)[:_MOST_SAID]
            raise StoreUnavailable(f"the store {self.name} cannot be reached: {said}") from error
        return answer.status_code, self._object(answer, bytes(whole))

    def _object(self, answer: httpx.Response, whole: bytes) -> Mapping[str, Any]:
        status = answer.status_code
        try:
            found = read_json(whole)
        except ValueError:
            found = None
        if status in _PASSING or status >= 500:
            why = "it is sealed" if _says(found, "sealed") else f"it answers with {status}"
            pause_s = _pause_s(answer.headers.get("retry-after", ""))
            raise StoreUnavailable(f"the store {self.name} gives no answer: {why}", pause_s)
        if answer.is_redirect:
            host = urlsplit(answer.headers.get("location", "")).netloc.rpartition("@")[2]
            raise StoreUnavailable(
                f"the store {self.name} leads elsewhere ({host[:_MOST_SAID] or status}), where no "
                "token is sent; name the active server, or what always leads to it, as its url"
            )
        if not isinstance(found, Mapping):
            raise StoreUnavailable(
                f"the store {self.name} answers with {status} and no JSON object; is its url right?"
            )
        return found

    def _late(self) -> str:
        return f"the store {self.name} has not answered within {self.settings.timeout_s:g} s"


def _says(found: object, word: str) -> bool:
    errors = found.get("errors") if isinstance(found, Mapping) else None
    return isinstance(errors, list) and any(word in str(one).lower() for one in errors)


def _pause_s(retry_after: str) -> float:
    seconds = int(retry_after) if retry_after.isdecimal() and len(retry_after) < 10 else 0
    return min(float(seconds), _LONGEST_PAUSE_S)
