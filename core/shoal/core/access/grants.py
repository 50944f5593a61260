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
