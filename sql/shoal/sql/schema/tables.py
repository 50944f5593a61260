"""All tables of the cluster; those of users are in ``access``.

``migrations/`` makes exactly these tables; a test compares the two.

Conditions of partial indices stand here once, as literal text, and are used by the queries too:
a prepared statement with a placeholder instead could not rely on the index.
"""

from shoal.sql.schema.commands import (
    IS_ACTIVE_BACKFILL,
    IS_NO_START,
    IS_PENDING,
    IS_PENDING_REQUEST,
    IS_RESTART,
    IS_START,
    backfill,
    backfill_run,
    command,
)
from shoal.sql.schema.definitions import (
    calendar,
    concurrency_group,
    data_source,
    draft,
    environment,
    project,
    schedule,
    secret,
    workflow,
    workflow_version,
)
from shoal.sql.schema.metadata import literals, metadata, row_id
from shoal.sql.schema.resources import IS_CURRENT, IS_OF_RUN, IS_UPLOAD, resource
from shoal.sql.schema.runs import (
    HAS_NOT_ENDED,
    IS_BLOCKED,
    IS_FINAL,
    IS_NO_PAST_LOOK,
    IS_OPEN,
    IS_WAITING,
    SLOT_ORDER,
    concurrency_lease,
    dependency_wait,
    instance_label,
    task_instance,
    workflow_instance,
)
from shoal.sql.schema.upkeep import (
    IS_OPEN_PART,
    cluster,
    event,
    partition,
    purge,
    purge_part,
    quarantine,
    sealing,
    takeover,
)

__all__ = [
    "HAS_NOT_ENDED",
    "IS_ACTIVE_BACKFILL",
    "IS_BLOCKED",
    "IS_CURRENT",
    "IS_FINAL",
    "IS_NO_PAST_LOOK",
    "IS_NO_START",
    "IS_OF_RUN",
    "IS_OPEN",
    "IS_OPEN_PART",
    "IS_PENDING",
    "IS_PENDING_REQUEST",
    "IS_RESTART",
    "IS_START",
    "IS_UPLOAD",
    "IS_WAITING",
    "SLOT_ORDER",
    "backfill",
    "backfill_run",
    "calendar",
    "cluster",
    "command",
    "concurrency_group",
    "concurrency_lease",
    "data_source",
    "dependency_wait",
    "draft",
    "environment",
    "event",
    "instance_label",
    "literals",
    "metadata",
    "partition",
    "project",
    "purge",
    "purge_part",
    "quarantine",
    "resource",
    "row_id",
    "schedule",
    "sealing",
    "secret",
    "takeover",
    "task_instance",
    "workflow",
    "workflow_instance",
    "workflow_version",
]
