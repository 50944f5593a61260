"""Settings of the API process."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class ApiSettings(BaseSettings):
    """Section ``[api]`` of the settings file, or ``SHOAL_API_…``."""

    model_config = SettingsConfigDict(env_prefix="SHOAL_API_", frozen=True, extra="forbid")

    host: str = "127.0.0.1"  # loopback only: there are no users and no TLS yet
    port: int = Field(default=8765, ge=0, le=65535)  # 0 takes a free one
    heartbeat_s: float = Field(default=15.0, gt=0)  # comments on quiet event streams
    subscriber_events: int = Field(default=1000, ge=1)  # unread events of one stream, at most
    shutdown_grace_s: float = Field(default=5.0, gt=0)  # for requests under way at the end
