"""Records of what an alert server cannot work with: see ``shoal.core.runs.quarantine``."""

from datetime import datetime

import structlog

from shoal.core.runs.quarantine import (
    ItemConsumer,
    ItemKind,
    QuarantinedItem,
    failed_item,
    failure_of,
)

log = structlog.get_logger()


def quarantined(
    kind: ItemKind,
    item: object,
    error: BaseException,
    now: datetime,
    *,
    project: str | None = None,
    workflow: str | None = None,
    is_skipped: bool,
) -> QuarantinedItem:
    """Return the record of an item that failed because of ``error``, and log it.

    ``is_skipped``: nothing tries it again by itself.
    """
    reason = failure_of(error)
    log.error(
        "quarantined", kind=kind, item=str(item), project=project, workflow=workflow, reason=reason
    )
    return failed_item(
        ItemConsumer.ALERTS,
        kind,
        item,
        reason,
        now,
        project=project,
        workflow=workflow,
        is_skipped=is_skipped,
    )
