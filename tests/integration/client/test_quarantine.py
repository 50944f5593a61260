"""``shoal quarantine`` on a real cluster."""

import asyncio
from datetime import UTC, datetime

from shoal.client.local.cluster import LocalCluster
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from shoal.runtime.settings import ClusterSettings
from shoal.sql import Database
from tests.integration.client.conftest import Shoal


def skipped(cluster: LocalCluster, *items: str) -> None:
    """Store skipped events, as an alert server does."""
    now = datetime.now(UTC)

    async def store() -> None:
        settings = ClusterSettings(data=cluster.data)
        async with Database(settings.database) as database, database.unit_of_work() as uow:
            for item in items:
                await uow.quarantine.note(
                    QuarantinedItem(
                        kind=ItemKind.EVENT,
                        item=item,
                        partition=None,
                        reason="KeyError: 'task'",
                        tries=1,
                        since=now,
                        consumer=ItemConsumer.ALERTS,
                        is_skipped=True,
                    )
                )
            await uow.commit()

    asyncio.run(store())


def test_items_are_listed_retried_and_discarded(here: Shoal, cluster: LocalCluster) -> None:
    assert "nothing is quarantined" in here("quarantine", "list", "--consumer", "alerts").err
    skipped(cluster, "17", "18")
    listed = here("quarantine", "list", "--json").json
    assert sorted(one["item"] for one in listed) == ["17", "18"]
    status = here("status")
    assert "alerts: event 17 was skipped: KeyError: 'task'" in status.out
    assert "shoal quarantine retry" in status.out
    assert here("quarantine", "retry", "alerts", "event", "17", "--json").json["retry_at"]
    assert "retry requested" in here("quarantine", "list").out
    for item in ("17", "18"):
        assert here("quarantine", "discard", "alerts", "event", item).status == 0
    assert here("quarantine", "list", "--json").json == []
    gone = here("quarantine", "discard", "alerts", "event", "17")
    assert gone.status == 3, gone.err
