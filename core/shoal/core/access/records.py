"""What is stored about principals, as people may see it: no hash, no secret."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from shoal.core.access.permissions import Permission, Role
from shoal.core.access.principals import PrincipalKind


@dataclass(frozen=True)
class Account:
    """A user or a service account. ``project``: of a service account."""

    id: int
    kind: PrincipalKind
    name: str
    full_name: str
    project: str | None
    is_admin: bool
    has_password: bool
    must_change_password: bool
    issuer: str | None
    subject: str | None  # what the issuer calls it
    created_at: datetime
    disabled_at: datetime | None


@dataclass(frozen=True)
class UserGroup:
    """A group of principals; ``members`` are names."""

    id: int
    name: str
    description: str
    created_at: datetime
    members: tuple[str, ...] = ()


class HolderKind(StrEnum):
    """What holds a role in a project."""

    USER = "user"
    SERVICE_ACCOUNT = "service-account"
    GROUP = "group"


@dataclass(frozen=True)
class ProjectMember:
    """Who has which role in a project."""

    kind: HolderKind
    name: str
    role: Role


@dataclass(frozen=True)
class LoginSession:
    """A browser that has signed in."""

    id: int
    principal_id: int
    created_at: datetime
    used_at: datetime
    expires_at: datetime
    address: str
    agent: str


@dataclass(frozen=True)
class ApiToken:
    """A token for programs, without its text. ``projects`` are names; None: no limit."""

    id: int
    principal_id: int
    owner: str
    name: str
    permissions: tuple[Permission, ...] | None
    projects: tuple[str, ...] | None
    created_at: datetime
    used_at: datetime | None
    expires_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True)
class NewAccount:
    """What makes an account. ``password`` is a hash; None: it does not sign in with one."""

    kind: PrincipalKind
    name: str
    full_name: str = ""
    project_id: int | None = None
    is_admin: bool = False
    password: str | None = field(default=None, repr=False)
    must_change_password: bool = False
    issuer: str | None = None
    subject: str | None = None
