"""Settings of the API process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from shoal.api.federation.settings import (
    LdapSettings,
    OidcSettings,
    words,
)
from shoal.runtime.settings import require_encryption


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(words)]


ProviderName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]


class ApiSettings(BaseSettings):
    """Section ``[api]`` of the settings file, or ``SHOAL_API_…``."""

    model_config = SettingsConfigDict(env_prefix="SHOAL_API_", frozen=True, extra="forbid")

    host: str = "127.0.0.1"
    # Beyond loopback it needs a certificate (PEM files), or a proxy in front that has one.
    tls_certificate: Annotated[Path | None, BeforeValidator(_none_if_empty)] = None
    tls_key: Annotated[Path | None, BeforeValidator(_none_if_empty)] = None
    allow_clear: bool = False  # listen in clear beyond loopback: a proxy has the certificate
    # The names by which clients reach it, besides those of loopback: others are refused.
    allowed_hosts: Words = ()
    # Addresses of proxies whose word for the client's address is taken.
    trusted_proxies: Words = ()
    port: int = Field(default=8765, ge=0, le=65535)  # 0 takes a free one
    # Make an administrator at the first start, and show its password once.
    first_admin: bool = True
    # By which browsers reach it, such as https://shoal.example: providers lead back there.
    public_url: str = ""
    # Where people sign in besides here: providers by a name of ours, and a directory.
    oidc: Mapping[ProviderName, OidcSettings] = {}
    ldap: LdapSettings | None = None
    heartbeat_s: float = Field(default=15.0, gt=0)  # comments on quiet event streams
    subscriber_events: int = Field(default=1000, ge=1)  # unread events of one stream, at most
    # A browser's session ends when it was not used for so long, and in any case after so long.
    session_idle_minutes: float = Field(default=30.0, gt=0)
    session_hours: float = Field(default=12.0, gt=0)
    # Commands that stay pending for longer, without a good reason, make the cluster degraded.
    pending_limit_s: float = Field(default=30.0, gt=0)
    shutdown_grace_s: float = Field(default=5.0, gt=0)  # for requests under way at the end

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted by the API itself."""
        return self.tls_certificate is not None

    @model_validator(mode="after")
    def _certificate_with_key(self) -> Self:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise ValueError("tls_certificate and tls_key go together")
        return self

    @model_validator(mode="after")
    def _providers_know_the_way_back(self) -> Self:
        if self.public_url:
            require_encryption(self.public_url)
            parts = urlsplit(self.public_url)
            if parts.path not in ("", "/") or parts.query or parts.fragment:
                raise ValueError("public_url has no path: write https://shoal.example")
        if self.oidc and not self.public_url:
            raise ValueError(
                "oidc needs public_url, the address by which browsers reach this API, such as "
                "https://shoal.example: providers lead back there"
            )
        return self
