"""Records of what an alert server cannot work with: see ``shoal.core.runs.quarantine``."""

from datetime import datetime

import structlog

from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem, failure_of

log = structlog.get_logger()

_LONGEST_ITEM, _LONGEST_NAME = 255, 100  # characters


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
    return QuarantinedItem(
        kind=kind,
        item=str(item)[:_LONGEST_ITEM],
        partition=None,
        reason=reason,
        tries=1,
        since=now,
        consumer=ItemConsumer.ALERTS,
        # Cut like the columns: a record that cannot be stored would stop what it is to keep going.
        project=None if project is None else project[:_LONGEST_NAME],
        workflow=None if workflow is None else workflow[:_LONGEST_NAME],
        last_at=now,
        is_skipped=is_skipped,
    )
