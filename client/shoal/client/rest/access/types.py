"""The JSON of accounts, groups, members, sessions and tokens, as types."""

from typing import Literal, TypedDict

RoleName = Literal["reader", "runner", "writer", "owner"]
HolderName = Literal["user", "service-account", "group"]


class RoleJson(TypedDict):
    project: str
    role: RoleName


class MeJson(TypedDict):
    name: str
    kind: Literal["USER", "SERVICE_ACCOUNT", "BREAK_GLASS"]
    is_admin: bool
    must_change_password: bool
    has_password: bool
    issuer: str | None  # where it signs in, besides here
    roles: list[RoleJson]
    permissions: list[str] | None  # what the token is limited to; None: to nothing
    projects: list[str] | None


class WayJson(TypedDict):
    name: str
    kind: Literal["password", "ldap", "oidc"]
    title: str
    path: str


class SessionJson(TypedDict):
    id: int
    created_at: str
    used_at: str
    expires_at: str
    address: str
    agent: str
    is_this: bool


class TokenJson(TypedDict):
    id: int
    owner: str
    name: str
    permissions: list[str] | None
    projects: list[str] | None
    created_at: str
    used_at: str | None
    expires_at: str | None


class NewTokenJson(TokenJson):
    token: str


class AccountJson(TypedDict):
    name: str
    kind: Literal["USER", "SERVICE_ACCOUNT"]
    full_name: str
    project: str | None
    is_admin: bool
    has_password: bool
    must_change_password: bool
    issuer: str | None
    subject: str | None
    created_at: str
    disabled_at: str | None


class NewUserJson(AccountJson):
    password: str | None  # None: it was given


class PrincipalGroupJson(TypedDict):
    name: str
    description: str
    members: list[str]
    created_at: str


GrantName = Literal["see", "run"]


class GrantJson(TypedDict):
    project: str
    what: GrantName
    created_at: str


class MemberJson(TypedDict):
    kind: HolderName
    name: str
    role: RoleName
