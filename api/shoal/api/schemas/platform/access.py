"""Accounts, groups, members, sessions and tokens. No password or token is in an answer twice."""

from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import BaseModel, Field, SecretStr, StrictBool, StrictInt

from shoal.api.schemas.common import ONE_LINE, TIME, Strict, body_example, example
from shoal.core.access.grants import Grant, Restricted
from shoal.core.access.permissions import Permission, Role
from shoal.core.access.principals import PrincipalKind
from shoal.core.access.records import HolderKind
from shoal.core.definition.fields import Name

#: Of users, groups and service accounts: an e-mail address is one.
ACCOUNT_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._@+-]*$"
AccountName = Annotated[
    str, Field(min_length=1, max_length=100, pattern=ACCOUNT_PATTERN, examples=["ada"])
]
FullName = Annotated[str, Field(max_length=200, pattern=ONE_LINE)]
Password = Annotated[SecretStr, Field(min_length=1, max_length=1000)]
TokenDays = Annotated[StrictInt, Field(ge=1, le=3660)]

_ROLE = {"project": "flights", "role": "writer"}


class LoginIn(Strict):
    """A name and its password."""

    model_config = body_example({"name": "ada", "password": "correct horse battery"})

    name: str = Field(min_length=1, max_length=100, examples=["ada"])
    password: Password


class RoleOut(BaseModel):
    """A role in a project."""

    model_config = example(_ROLE)

    project: str
    role: Role


class MeOut(BaseModel):
    """The caller, and what it may do."""

    model_config = example(
        {
            "name": "ada",
            "kind": "USER",
            "is_admin": False,
            "must_change_password": False,
            "has_password": True,
            "issuer": None,
            "roles": [_ROLE],
            "permissions": None,
            "projects": None,
        }
    )

    name: str
    kind: PrincipalKind
    is_admin: bool = Field(description="May do everything, in all projects.")
    must_change_password: bool = Field(description="Nothing else is allowed before.")
    has_password: bool = Field(description="Signs in with a password here.")
    issuer: str | None = Field(description="The OpenID provider or directory that signs it in.")
    roles: list[RoleOut] = Field(description="One's own and those of one's groups.")
    permissions: list[Permission] | None = Field(
        description="What the token that was sent is limited to; null: to nothing."
    )
    projects: list[str] | None = Field(description="Projects that the token is limited to.")


class PasswordIn(Strict):
    """Another password for oneself."""

    model_config = body_example({"current": "correct horse battery", "new": "staple battery horse"})

    current: Password
    new: Password
    keep_tokens: StrictBool = Field(default=False, description="Else all tokens are revoked.")


class SessionOut(BaseModel):
    """A browser that has signed in."""

    model_config = example(
        {
            "id": 5,
            "created_at": TIME,
            "used_at": TIME,
            "expires_at": TIME,
            "address": "192.0.2.7",
            "agent": "Mozilla/5.0",
            "is_this": True,
        }
    )

    id: int
    created_at: datetime
    used_at: datetime = Field(description="To within some minutes.")
    expires_at: datetime
    address: str
    agent: str
    is_this: bool = Field(description="It is the one that asks.")


class TokenIn(Strict):
    """A token for programs."""

    model_config = body_example({"name": "nightly import", "projects": ["flights"], "days": 90})

    name: str = Field(min_length=1, max_length=100, pattern=ONE_LINE, examples=["nightly import"])
    permissions: list[Permission] | None = Field(
        default=None, min_length=1, description="What it is limited to; null: what its owner may."
    )
    projects: list[str] | None = Field(
        default=None, min_length=1, max_length=1000, description="Null: those of its owner."
    )
    days: TokenDays | None = Field(default=90, description="Until it expires; null: never.")


class TokenOut(BaseModel):
    """A token, without its text."""

    model_config = example(
        {
            "id": 3,
            "owner": "ada",
            "name": "nightly import",
            "permissions": ["run.operate", "project.read"],
            "projects": ["flights"],
            "created_at": TIME,
            "used_at": None,
            "expires_at": TIME,
        }
    )

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

    token: str = Field(description="Its text: shown this once, nobody can read it again.")


class AccountOut(BaseModel):
    """A user or a service account."""

    model_config = example(
        {
            "name": "ada",
            "kind": "USER",
            "full_name": "Ada Lovelace",
            "project": None,
            "is_admin": False,
            "has_password": True,
            "must_change_password": False,
            "issuer": None,
            "subject": None,
            "created_at": TIME,
            "disabled_at": None,
        }
    )

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


class UserIn(Strict):
    """A new user."""

    model_config = body_example({"name": "ada", "full_name": "Ada Lovelace"})

    name: AccountName
    full_name: FullName = ""
    is_admin: StrictBool = False
    password: Password | None = Field(
        default=None, description="To be changed at the first sign-in; null: a random one is made."
    )


class UserChange(Strict):
    """What changes of a user; what is left out stays."""

    model_config = body_example({"disabled": True})

    full_name: FullName | None = None
    is_admin: StrictBool | None = None
    disabled: StrictBool | None = Field(
        default=None, description="True: it can do nothing any more, and its runs go on."
    )


class NewUserOut(AccountOut):
    """A user with a password that was made just now."""

    password: str | None = Field(description="Shown this once; null: it was given.")


class GroupIn(Strict):
    """A new group."""

    model_config = body_example({"name": "analysts"})

    name: AccountName
    description: str = Field(default="", max_length=1000)


class GroupChange(Strict):
    """What a group is for."""

    model_config = body_example({"description": "who look at the numbers"})

    description: str = Field(max_length=1000)


class GroupOut(BaseModel):
    """A group of users and service accounts."""

    model_config = example(
        {
            "name": "analysts",
            "description": "",
            "members": ["ada"],
            "created_at": TIME,
        }
    )
    uncounted: ClassVar[frozenset[str]] = frozenset({"members"})  # each is put and deleted

    name: str
    description: str
    members: list[str]
    created_at: datetime


class MemberIn(Strict):
    """The role of a member."""

    model_config = body_example({"role": "writer"})

    role: Role


class MemberOut(BaseModel):
    """Who has a role in a project."""

    model_config = example({"kind": "user", "name": "ada", "role": "writer"})

    kind: HolderKind
    name: str
    role: Role


class GrantIn(Strict):
    """What another project may do."""

    model_config = body_example({"what": "run"})

    what: Grant = Field(
        description="see: its tasks may wait for runs here. run: they may run workflows, too."
    )


class GrantOut(BaseModel):
    """What a project lets the tasks of another one do."""

    model_config = example({"project": "reports", "what": "run", "created_at": TIME})

    project: str = Field(description='Whose tasks may; "*": those of every project.')
    what: Grant
    created_at: datetime


class ResourceGrantIn(Strict):
    """Which files another project may use."""

    model_config = body_example({"paths": ["lib/", "etl/clean.sh"]})

    paths: list[str] = Field(
        min_length=1,
        max_length=100,
        description='Files, folders with a slash at the end, or "*" for all files.',
    )


class ResourceGrantOut(BaseModel):
    """Which files of a project the tasks of another one may use."""

    model_config = example(
        {
            "project": "reports",
            "paths": ["etl/clean.sh", "lib/"],
            "created_at": TIME,
            "updated_at": TIME,
        }
    )

    project: str = Field(description='Whose tasks may; "*": those of every project.')
    paths: list[str] = Field(description="In order.")
    created_at: datetime
    updated_at: datetime


class RestrictionIn(Strict):
    """Which projects may use a worker group or an environment."""

    model_config = body_example({"projects": ["flights", "reports"]})

    projects: list[Name] = Field(
        max_length=1000, description="Names, of projects that need not exist yet; none: no project."
    )


class RestrictionOut(BaseModel):
    """A worker group or an environment that some projects alone may use."""

    model_config = example(
        {
            "kind": "worker-group",
            "name": "gpu",
            "projects": ["flights", "reports"],
            "created_at": TIME,
            "updated_at": TIME,
        }
    )

    kind: Restricted
    name: str
    projects: list[str] = Field(description="By name, in order; none: no project.")
    created_at: datetime
    updated_at: datetime


class ServiceAccountIn(Strict):
    """A new service account of a project."""

    model_config = body_example({"name": "loader", "role": "runner"})

    name: AccountName
    role: Role
