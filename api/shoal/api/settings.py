"""Settings of the API process."""

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


def _words(value: Any) -> Any:
    """Return the words of a text; they are separated by commas or spaces."""
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]


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
    heartbeat_s: float = Field(default=15.0, gt=0)  # comments on quiet event streams
    subscriber_events: int = Field(default=1000, ge=1)  # unread events of one stream, at most
    # A browser's session ends when it was not used for so long, and in any case after so long.
    session_idle_minutes: float = Field(default=30.0, gt=0)
    session_hours: float = Field(default=12.0, gt=0)
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
