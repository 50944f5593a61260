"""Restrictions: which projects may use what belongs to the cluster.

Worker groups and environments are for every project, until an administrator restricts one to some.
A restriction is about a name, whether or not there is such a group or environment at the moment.
"""

from enum import StrEnum


class Restricted(StrEnum):
    """What can be restricted to projects."""

    WORKER_GROUP = "worker-group"  # its workers run no task of another project
    ENVIRONMENT = "environment"  # for another project there is none of this name


def no_such_group(project: str, group: str) -> str:
    """Return why a task of a project is not for a worker group: the same at save and at run."""
    return (
        f"project {project} may not use the worker group {group!r}; choose another one, or let an "
        f"administrator allow it: `shoal grant restrict worker-group {group} --add {project}`"
    )
