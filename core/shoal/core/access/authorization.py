"""May this principal do that? The only place that answers it."""

from collections.abc import Set
from enum import Enum, StrEnum, auto
from typing import Any

from shoal.core.access.permissions import GIVES_RIGHTS, OF_PLATFORM, OF_PROJECT, ROLES, Permission
from shoal.core.access.principals import EVERYTHING, Principal, TokenScope


class AccessVerdict(Enum):
    """The answer to a request."""

    ALLOWED = auto()
    FORBIDDEN = auto()  # the principal may know that the thing exists, and may not do this
    HIDDEN = auto()  # the principal may not know whether the thing exists


def judge(
    principal: Principal, permission: Permission, project: int | None = None
) -> AccessVerdict:
    """Say whether a principal has a permission.

    ``project`` is the id of the project that a permission of projects is about; None for a project
    that does not exist, which is hidden from all. Who has to change the password first may do
    nothing else.
    """
    if principal.must_change_password and permission is not Permission.SIGNED_IN:
        return AccessVerdict.FORBIDDEN
    if permission in OF_PROJECT:
        if project is None or not _has(principal, Permission.PROJECT_READ, project):
            return AccessVerdict.HIDDEN
        is_allowed = _has(principal, permission, project)
    else:
        is_allowed = _has_of_platform(principal, permission)
    return AccessVerdict.ALLOWED if is_allowed else AccessVerdict.FORBIDDEN


#: The ids of the projects whose things a list may show; None: of all.
Visible = Set[int] | None


def visible(principal: Principal) -> Visible:
    """Return the ids of the projects that a principal may read; None: all."""
    scope = principal.scope
    if principal.must_change_password or not _is_in(scope.permissions, Permission.PROJECT_READ):
        return frozenset()
    if principal.is_admin:
        return scope.projects
    return frozenset(project for project in principal.roles if _is_in(scope.projects, project))


def is_unlimited(principal: Principal) -> bool:
    """Say whether a principal may do everything with everything: nothing need be looked up."""
    is_free = principal.scope == EVERYTHING and not principal.must_change_password
    return principal.is_admin and is_free


def _has(principal: Principal, permission: Permission, project: int) -> bool:
    scope = principal.scope
    if not (_covers(scope, permission) and _is_in(scope.projects, project)):
        return False
    role = principal.roles.get(project)
    return principal.is_admin or (role is not None and permission in ROLES[role])


def _has_of_platform(principal: Principal, permission: Permission) -> bool:
    if permission is Permission.SIGNED_IN:
        return True
    assert permission in OF_PLATFORM, permission
    scope = principal.scope
    return principal.is_admin and scope.is_of_platform and _covers(scope, permission)


def _covers(scope: TokenScope, permission: Permission) -> bool:
    """Say whether a token's limits leave a permission.

    What gives rights is left by none: an account that a limited token made would have none of its
    limits.
    """
    if permission in GIVES_RIGHTS:
        return scope.permissions is None
    return _is_in(scope.permissions, permission)


def _is_in(limit: Set[Any] | None, one: Any) -> bool:
    return limit is None or one in limit


class Thing(StrEnum):
    """What a request may name by a key of its own: a project by its name, the others by ids."""

    PROJECT = "project"
    INSTANCE = "workflow instance"
    TASK_INSTANCE = "task instance"
    COMMAND = "command"
    SCHEDULE = "schedule"
    BACKFILL = "backfill"
    PAST_RUN = "past run"  # of the exported history, in which projects have names alone
