"""Grants between projects: what the tasks of one may do with another.

Who edits a definition decides what its tasks do, so a definition could reach whatever the cluster
reaches. It reaches another project only as far as an owner of that one lets it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

#: Stands for every project.
EVERY_PROJECT = "*"


class Grant(StrEnum):
    """What a project lets the tasks of another one do. The later one includes the earlier one."""

    SEE = "see"  # wait for its runs (DEPENDENT)
    RUN = "run"  # run its workflows (SUB_WORKFLOW, MAP), and see how they end


#: By what is needed: the grants that give it.
GIVEN_BY: Mapping[Grant, frozenset[Grant]] = {
    Grant.SEE: frozenset({Grant.SEE, Grant.RUN}),
    Grant.RUN: frozenset({Grant.RUN}),
}


@dataclass(frozen=True)
class StoredGrant:
    """What a project lets ``taker`` do; "*" is every project."""

    taker: str
    what: Grant
    created_at: datetime


@dataclass(frozen=True)
class ResourceGrant:
    """Which files of a project the tasks of ``taker`` may use; "*" is every project.

    ``paths``: of files, of folders with a slash at the end, or "*" for all.
    """

    taker: str
    paths: tuple[str, ...]
    created_at: datetime
    updated_at: datetime


def no_such_file(giver: str, wanted: object, taker: str) -> str:
    """Return why a task cannot use a file of another project: there is none, or it is not shared.

    The words are the same for both.
    """
    path = str(wanted).partition(":")[2].partition("@")[0]
    return (
        f"there is no resource {wanted} that project {taker} may use; if there is one, an owner of "
        f"{giver} can share it: shoal grant files {taker} {path} --project {giver}"
    )
