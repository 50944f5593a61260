"""Settings of an alert server."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from shoal.runtime.outbound.addresses import read_networks
from shoal.runtime.settings import Interval


class AlertSettings(BaseSettings):
    """Section ``[alert]`` of the settings file, or ``SHOAL_ALERT_…``."""

    model_config = SettingsConfigDict(env_prefix="SHOAL_ALERT_", frozen=True, extra="forbid")

    poll_s: Interval = 1.0  # between two looks for new events and due messages
    watch_s: Interval = 15.0  # between two looks for conditions, as deadlines
    # Where people find the web UI, for links in messages; empty: no links.
    public_url: str = Field(default="", pattern=r"^$|^https?://\S+$")
    # Folder of the programs that script channels may run; empty: none may run.
    scripts: Path | None = None
    # Networks that webhooks and chats may or may not reach, besides what is refused by default.
    http_allow: str = ""
    http_deny: str = ""
    at_once: int = Field(default=4, ge=1, le=100)  # messages of one channel that leave together
    keep_alerts_days: float = Field(default=90.0, ge=0)  # that are over; 0: for ever

    @model_validator(mode="after")
    def _networks_can_be_read(self) -> Self:
        read_networks(self.http_allow)
        read_networks(self.http_deny)
        return self

    def for_channels(self) -> dict[str, str]:
        """Return what channels may know of these."""
        return {
            "http_allow": self.http_allow,
            "http_deny": self.http_deny,
            "scripts": str(self.scripts or ""),
        }
