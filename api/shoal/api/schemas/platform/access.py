"""Accounts, groups, members, sessions and tokens. No password or token is in an answer twice."""

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import Field, SecretStr, StrictBool, StrictInt

from shoal.api.schemas.common import Answer, RequestBody
from shoal.core.access.grants import Grant, Restricted
from shoal.core.access.permissions import Permission, Role
from shoal.core.access.principals import PrincipalKind
from shoal.core.access.records import HolderKind
from shoal.core.definition.fields import ONE_LINE, Name

#: Of users, groups and service accounts: an e-mail address is one.
ACCOUNT_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$"
AccountName = Annotated[
    str, Field(min_length=1, max_length=100, pattern=ACCOUNT_PATTERN, examples=["ada"])
]
FullName = Annotated[str, Field(max_length=200, pattern=ONE_LINE)]
Password = Annotated[SecretStr, Field(min_length=1, max_length=1000)]
TokenDays = Annotated[StrictInt, Field(ge=1, le=3660)]


class LoginIn(RequestBody):
    """A name and its password."""

    name: str = Field(min_length=1, max_length=100, examples=["ada"])
    password: Password


class RoleOut(Answer):
    """A role in a project."""

    project: str
    role: Role


class MeOut(Answer):
    """The caller, and what it may do."""

    name: str
    kind: PrincipalKind
    is_admin: bool = Field(description="May do everything, in all projects.")
    must_change_password: bool = Field(description="Nothing else is allowed before.")
    has_password: bool = Field(description="Signs in with a password here.")
    issuer: str | None = Field(description="The OpenID provider or directory that signs it in.")
    roles: list[RoleOut] = Field(description="Own roles and roles of one's groups.")
    permissions: list[Permission] | None = Field(
        description="What the token that was sent is limited to; null: to nothing."
    )
    projects: list[str] | None = Field(description="Projects that the token is limited to.")


class PasswordIn(RequestBody):
    """Another password for oneself."""

    current: Password
    new: Password
    keep_tokens: StrictBool = Field(default=False, description="Else all tokens are revoked.")


class SessionOut(Answer):
    """A browser that has signed in."""

    id: int
    created_at: datetime
    used_at: datetime = Field(description="To within some minutes.")
    expires_at: datetime
    address: str
    agent: str
    is_this: bool = Field(description="It is the one that asks.")


class TokenIn(RequestBody):
    """A token for programs."""

    name: str = Field(min_length=1, max_length=100, pattern=ONE_LINE, examples=["nightly import"])
    permissions: list[Permission] | None = Field(
        default=None, min_length=1, description="What it is limited to; null: what its owner may."
    )
    projects: list[str] | None = Field(
        default=None,
        min_length=1,
        max_length=1000,
        description="Null: all permissions of its owner.",
    )
    days: TokenDays | None = Field(default=90, description="Until it expires; null: never.")


class TokenOut(Answer):
    """A token, without its text."""

    id: int
    owner: str
    name: str
    permissions: list[Permission] | None
    projects: list[str] | None
    created_at: datetime
    used_at: datetime | None = Field(description="To within some minutes.")
    expires_at: datetime | None


class NewTokenOut(TokenOut):
    """A token that was just made."""

    token: str = Field(description="Its text, which is shown only once.")


class AccountOut(Answer):
    """A user or a service account."""

    name: str
    kind: PrincipalKind
    full_name: str
    project: str | None = Field(description="Of a service account.")
    is_admin: bool
    has_password: bool
    must_change_password: bool
    issuer: str | None = Field(description="The OpenID provider or directory that signs it in.")
    subject: str | None = Field(description="What the issuer calls it.")
    created_at: datetime
    disabled_at: datetime | None


class UserIn(RequestBody):
    """A new user."""

    name: AccountName
    full_name: FullName = ""
    is_admin: StrictBool = False
    password: Password | None = Field(
        default=None, description="To be changed at the first sign-in; null: a random one is made."
    )


class UserChange(RequestBody):
    """What changes of a user; what is left out stays."""

    full_name: FullName | None = None
    is_admin: StrictBool | None = None
    disabled: StrictBool | None = Field(
        default=None, description="True: it can no longer sign in; its runs continue."
    )


class NewUserOut(AccountOut):
    """A user with a password that was made just now."""

    password: str | None = Field(description="Shown this once; null: it was given.")


class GroupIn(RequestBody):
    """A new group."""

    name: AccountName
    description: str = Field(default="", max_length=1000)


class GroupChange(RequestBody):
    """What a group is for."""

    description: str = Field(max_length=1000)


class GroupOut(Answer):
    """A group of users and service accounts."""

    uncounted: ClassVar[frozenset[str]] = frozenset({"members"})  # each is put and deleted

    name: str
    description: str
    members: list[str]
    created_at: datetime


class MemberIn(RequestBody):
    """The role of a member."""

    role: Role


class MemberOut(Answer):
    """Who has a role in a project."""

    kind: HolderKind
    name: str
    role: Role


class GrantIn(RequestBody):
    """What another project may do."""

    what: Grant = Field(
        description="see: its tasks may wait for runs here. run: they may run workflows, too."
    )


class GrantOut(Answer):
    """What a project lets the tasks of another one do."""

    project: str = Field(description='Project whose tasks may; "*": every project.')
    what: Grant
    created_at: datetime


class ResourceGrantIn(RequestBody):
    """Which files another project may use."""

    paths: list[str] = Field(
        min_length=1,
        max_length=100,
        description='Files, folders with a slash at the end, or "*" for all files.',
    )


class ResourceGrantOut(Answer):
    """Which files of a project the tasks of another one may use."""

    project: str = Field(description='Project whose tasks may; "*": every project.')
    paths: list[str] = Field(description="In order.")
    created_at: datetime
    updated_at: datetime


class RestrictionIn(RequestBody):
    """Which projects may use a worker group or an environment."""

    projects: list[Name] = Field(
        max_length=1000, description="Names, of projects that need not exist yet; none: no project."
    )


class RestrictionOut(Answer):
    """A worker group or an environment that some projects alone may use."""

    kind: Restricted
    name: str
    projects: list[str] = Field(description="By name, in order; none: no project.")
    created_at: datetime
    updated_at: datetime


class ServiceAccountIn(RequestBody):
    """A new service account of a project."""

    name: AccountName
    role: Role
