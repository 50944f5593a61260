"""Permissions, and the roles that hold them.

A permission is of one project or of the platform. Every route of the API declares one; nothing
else is asked for. Roles are sets of permissions and each holds those of the one before it.
"""

from collections.abc import Mapping
from enum import StrEnum


class Permission(StrEnum):
    """What a request needs."""

    # Of every user who has signed in.
    SIGNED_IN = "signed-in"  # one's own account; what is the same for all projects
    # Of one project.
    PROJECT_READ = "project.read"  # definitions, runs, logs, files; no secret
    RUN_OPERATE = "run.operate"  # start, pause, stop, recover, kill, force, backfill
    PROJECT_EDIT = "project.edit"  # workflows, calendars, groups, parameters, resources
    CONNECTION_EDIT = "connection.edit"  # secrets, data sources, and trying them
    PROJECT_MANAGE = "project.manage"  # members, service accounts, the project itself
    # Of the platform.
    CLUSTER_READ = "cluster.read"  # masters, workers, partitions, queues, quarantine, stores
    CLUSTER_OPERATE = "cluster.operate"  # retry and discard what is quarantined
    PROJECT_CREATE = "project.create"
    HISTORY_PURGE = "history.purge"  # delete the past of all projects
    ENVIRONMENT_EDIT = "environment.edit"  # what programs find around them
    RESTRICTION_EDIT = "restriction.edit"  # which projects may use worker groups, environments
    USER_MANAGE = "user.manage"  # users, groups, their roles, tokens and sessions
    AUDIT_READ = "audit.read"  # who has done what, in all projects
    SECRETS_ROTATE = "secrets.rotate"  # the keys that encrypt secrets


OF_PROJECT = frozenset(
    {
        Permission.PROJECT_READ,
        Permission.RUN_OPERATE,
        Permission.PROJECT_EDIT,
        Permission.CONNECTION_EDIT,
        Permission.PROJECT_MANAGE,
    }
)
OF_PLATFORM = frozenset(
    {
        Permission.CLUSTER_READ,
        Permission.CLUSTER_OPERATE,
        Permission.PROJECT_CREATE,
        Permission.HISTORY_PURGE,
        Permission.ENVIRONMENT_EDIT,
        Permission.RESTRICTION_EDIT,
        Permission.USER_MANAGE,
        Permission.AUDIT_READ,
        Permission.SECRETS_ROTATE,
    }
)


#: Those that give rights to others. No caller gives more than it has, so a token that is limited to
#: some permissions has none of these.
GIVES_RIGHTS = frozenset({Permission.PROJECT_MANAGE, Permission.USER_MANAGE})


class Role(StrEnum):
    """What a principal is in a project. The later ones may do all that the earlier ones may."""

    READER = "reader"
    RUNNER = "runner"
    WRITER = "writer"
    OWNER = "owner"


_READER = frozenset({Permission.PROJECT_READ})
_RUNNER = _READER | {Permission.RUN_OPERATE}
_WRITER = _RUNNER | {Permission.PROJECT_EDIT, Permission.CONNECTION_EDIT}
ROLES: Mapping[Role, frozenset[Permission]] = {
    Role.READER: _READER,
    Role.RUNNER: _RUNNER,
    Role.WRITER: _WRITER,
    Role.OWNER: _WRITER | {Permission.PROJECT_MANAGE},
}


def stronger(one: Role | None, other: Role | None) -> Role | None:
    """Return the role that may do more; None is none."""
    if one is None or other is None:
        return one or other
    return max(one, other, key=lambda role: len(ROLES[role]))


def roles_with(permission: Permission) -> tuple[Role, ...]:
    """Return the roles that hold a permission of projects, the weakest first."""
    return tuple(role for role, held in ROLES.items() if permission in held)
