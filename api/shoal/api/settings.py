"""Settings of the API process, and of the providers and the directory where people sign in."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from shoal.runtime.settings import OptionalFile, require_encryption

# What a public key can check: no "none", and no HS256, whose key is a secret.
ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)


def _words(value: Any) -> Any:
    """Return the words of a text, which commas or spaces separate; other values as they are."""
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]
ProviderName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]


def host_of_url(host: str) -> str:
    """Return a host name or an IP address as it stands in a URL: IPv6 in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


class FederationSettings(BaseModel):
    """What a provider and a directory have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str = Field(default="", max_length=100)  # what people see; empty: its name
    ca: OptionalFile = (
        None  # PEM file of the authority of its certificate; empty: those of the system
    )
    timeout_s: float = Field(default=5.0, gt=0, le=60)
    # Make an account at the first sign-in of a person; else people who have none are refused.
    make_accounts: bool = False
    # Which of its groups are which of ours: nothing else of what it says makes a member.
    groups: Mapping[str, str] = {}


class OidcSettings(FederationSettings):
    """Table ``[api.oidc.NAME]``: an OpenID provider."""

    issuer: str  # exactly as the provider writes it
    client_id: str = Field(min_length=1, max_length=500)
    client_secret_file: OptionalFile = None  # empty: a public client
    scopes: Words = ("openid", "profile")
    algorithms: Words = ("RS256", "ES256", "PS256", "EdDSA")  # of signatures that count
    name_claim: str = "preferred_username"  # the name of an account that is made
    groups_claim: str = ""  # empty: the provider says nothing of groups

    @field_validator("issuer")
    @classmethod
    def _issuer_is_encrypted(cls, value: str) -> str:
        require_encryption(value)
        parts = urlsplit(value)
        if parts.query or parts.fragment or len(value) > 500:
            raise ValueError("an issuer has no query and no fragment, and at most 500 characters")
        return value

    @field_validator("scopes")
    @classmethod
    def _scopes_hold_openid(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "openid" not in value:
            raise ValueError("has to hold openid: else the provider does not say who signs in")
        return value

    @field_validator("algorithms")
    @classmethod
    def _algorithms_are_asymmetric(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := sorted(set(value) - ALGORITHMS):
            known = ", ".join(sorted(ALGORITHMS))
            raise ValueError(f"{', '.join(wrong)} cannot be used; choose of {known}")
        if not value:
            raise ValueError("name one at least")
        return value

    @model_validator(mode="after")
    def _groups_come_by_a_claim(self) -> Self:
        if self.groups and not self.groups_claim:
            raise ValueError("groups need groups_claim: the claim that names them")
        return self


class LdapSettings(FederationSettings):
    """Table ``[api.ldap]``: a directory."""

    name: str = Field(default="directory", pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")
    servers: Words = Field(min_length=1)  # tried in this order
    start_tls: bool = False  # ldap:// servers that are asked for encryption first
    # Search with an account of Shoal's own, or know the DN of people by a template.
    bind_dn: str = ""
    bind_password_file: OptionalFile = None
    base_dn: str = ""
    user_filter: str = "(uid={name})"
    user_dn: str = ""
    # What stays when a user gets another name: entryUUID; objectGUID at Active Directory.
    id_attribute: str = "entryUUID"
    name_attribute: str = "uid"
    full_name_attribute: str = "cn"
    # Groups: the attribute of people that names them, or a search for groups with that member.
    groups_attribute: str = "memberOf"
    group_base_dn: str = ""
    group_filter: str = "(member={dn})"

    @field_validator("servers")
    @classmethod
    def _servers_are_urls(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            parts = urlsplit(one)
            if parts.scheme not in ("ldap", "ldaps") or not parts.hostname or parts.path.strip("/"):
                raise ValueError(
                    f"{one!r} is not a server: write ldaps://host, or ldaps://host:port"
                )
        return value

    @field_validator("user_filter")
    @classmethod
    def _filter_has_a_place(cls, value: str) -> str:
        if "{name}" not in value or not (value.startswith("(") and value.endswith(")")):
            raise ValueError("is a filter in parentheses with {name} in it, such as (uid={name})")
        return value

    @field_validator("user_dn")
    @classmethod
    def _template_has_a_place(cls, value: str) -> str:
        if value and "{name}" not in value:
            raise ValueError("has {name} in it, such as uid={name},ou=people,dc=example,dc=org")
        return value

    @model_validator(mode="after")
    def _always_encrypted(self) -> Self:
        for one in self.servers:
            if one.startswith("ldap://") and not self.start_tls:
                raise ValueError(
                    f"{one} would carry passwords in clear: write ldaps://, or set start_tls = true"
                )
            if one.startswith("ldaps://") and self.start_tls:
                raise ValueError(f"{one} is encrypted already: start_tls is for ldap://")
        return self

    @model_validator(mode="after")
    def _one_way_to_find_people(self) -> Self:
        if bool(self.user_dn) == bool(self.bind_dn):
            raise ValueError(
                "set bind_dn to search for people with an account of Shoal's own, or user_dn if "
                "their DN is known by their name"
            )
        if self.bind_dn and not (self.bind_password_file and self.base_dn):
            raise ValueError("bind_dn needs bind_password_file and base_dn")
        return self


Oidc = Annotated[Mapping[str, OidcSettings], Field(default_factory=dict)]
Kind = Literal["password", "oidc", "ldap"]


class ApiAddress(BaseSettings):
    """Where the API is: what a client reads of the section ``[api]``, whatever else it holds."""

    model_config = SettingsConfigDict(env_prefix="SHOAL_API_", frozen=True, extra="ignore")

    host: str = "127.0.0.1"
    # Beyond loopback it needs a certificate (PEM files), or a proxy in front that has one.
    tls_certificate: OptionalFile = None
    # The names by which clients reach it, besides those of loopback: others are refused.
    allowed_hosts: Words = ()
    port: int = Field(default=8765, ge=0, le=65535)  # 0 takes a free one

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted by the API itself."""
        return self.tls_certificate is not None


class ApiSettings(ApiAddress):
    """Section ``[api]`` of the settings file, or ``SHOAL_API_…``."""

    model_config = SettingsConfigDict(extra="forbid")

    tls_key: OptionalFile = None
    allow_clear: bool = False  # listen in clear beyond loopback: a proxy has the certificate
    # Addresses and networks of proxies whose word for the client's address is taken; * is all.
    trusted_proxies: Words = ()
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
    # Connections of one address, event streams of one caller, and commands of one caller: how many
    # a minute, and how many of those without a pause. Beyond, the answer is 429 with Retry-After.
    connections_per_address: int = Field(default=1000, ge=10)
    streams_per_caller: int = Field(default=100, ge=1)
    commands_per_minute: float = Field(default=600, gt=0)
    commands_at_once: int = Field(default=60, ge=1)
    # Commands that stay pending for longer, without a good reason, make the cluster degraded.
    pending_limit_s: float = Field(default=30.0, gt=0)
    # So do these; 0: never. A task that waits in the queue of its worker group:
    queued_limit_s: float = Field(default=21_600.0, ge=0, le=1e8)
    # An event that alert servers have not read:
    alerts_lag_limit_s: float = Field(default=300.0, ge=0, le=1e8)
    # The last export of the history, and the last purge of a partition, if they are that long ago:
    export_age_limit_s: float = Field(default=7_200.0, ge=0, le=1e8)
    purge_age_limit_s: float = Field(default=172_800.0, ge=0, le=1e8)
    # An event loop that was late by so much within the last minute, in any process:
    loop_lag_limit_s: float = Field(default=2.0, ge=0, le=1e8)
    shutdown_grace_s: float = Field(default=5.0, gt=0)  # for requests under way at the end

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
