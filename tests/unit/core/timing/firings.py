"""All firings of a cron expression in a period, forward and backward."""

from datetime import UTC, datetime, timedelta

from shoal.core.timing.cron.expression import Cron


def forward(cron: Cron, start: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    now = cron.next(start - timedelta(microseconds=1))
    while now is not None and now.astimezone(UTC) < end:
        found.append(now.astimezone(UTC))
        now = cron.next(now)
    return found


def backward(cron: Cron, start: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    now = cron.previous(end)
    while now is not None and now.astimezone(UTC) >= start:
        found.append(now.astimezone(UTC))
        now = cron.previous(now)
    return found[::-1]
