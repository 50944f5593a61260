"""What is quarantined can be listed, tried again and discarded."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from shoal.coordination.cluster import layout
from shoal.coordination.cluster.membership import Membership
from shoal.core.runs.quarantine import ItemConsumer, ItemKind, QuarantinedItem
from tests.integration.api.conftest import PREFIX, Api, problem_of
from tests.support.waiting import DEADLINE_S

NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)
LIST, RETRIES, DISCARDS = (
    f"{PREFIX}/quarantine",
    f"{PREFIX}/quarantine-retries",
    f"{PREFIX}/quarantine-discards",
)


async def held(api: Api, *items: QuarantinedItem) -> None:
    async with api.services.store.unit_of_work() as uow:
        for one in items:
            await uow.quarantine.note(one)
        await uow.commit()


def item(kind: ItemKind, name: str, minute: int = 0, **fields: object) -> QuarantinedItem:
    at = NOW + timedelta(minutes=minute)
    of_alerts = {"consumer": ItemConsumer.ALERTS, "is_skipped": kind is ItemKind.EVENT}
    return QuarantinedItem(kind, name, None, f"why {name}", 1, at, last_at=at, **of_alerts | fields)  # type: ignore[arg-type]


def ref(one: QuarantinedItem) -> dict[str, str]:
    return {"consumer": one.consumer, "kind": one.kind, "item": one.item}


async def names(api: Api, query: str = "") -> list[str]:
    found = await api.client.get(f"{LIST}{query}")
    assert found.status_code == 200, found.text
    return [one["item"] for one in found.json()["items"]]


async def test_items_are_listed_the_one_that_failed_last_first(api: Api) -> None:
    items = [item(ItemKind.EVENT, str(n), n, project=f"p{n % 2}") for n in range(5)]
    of_master = item(ItemKind.INSTANCE, "7", 9, consumer=ItemConsumer.MASTERS)
    await held(api, *items, of_master)
    assert await names(api) == ["7", "4", "3", "2", "1", "0"]
    assert await names(api, "?consumer=alerts&project=p1") == ["3", "1"]
    assert await names(api, "?kind=instance") == ["7"]
    first = (await api.client.get(f"{LIST}?limit=4")).json()
    assert await names(api, f"?limit=4&cursor={first['next']}") == ["1", "0"]


async def test_retry_of_an_event_is_kept_for_the_alert_servers(api: Api) -> None:
    event = item(ItemKind.EVENT, "17")
    await held(api, event)
    answer = await api.client.post(RETRIES, json=ref(event))
    assert answer.status_code == 202, answer.text
    assert answer.json()["retry_at"] is not None
    async with api.services.store.unit_of_work(read_only=True) as uow:
        wanted = await uow.quarantine.requested(ItemConsumer.ALERTS, [ItemKind.EVENT])
    assert [one.item for one in wanted] == ["17"]
    await held(api, event)  # it fails again
    async with api.services.store.unit_of_work(read_only=True) as uow:
        assert not await uow.quarantine.requested(ItemConsumer.ALERTS, [ItemKind.EVENT])


@pytest.mark.parametrize("kind", [ItemKind.EVENT, ItemKind.MESSAGE, ItemKind.ALERT])
async def test_items_of_alert_servers_can_be_discarded(api: Api, kind: ItemKind) -> None:
    one = item(kind, "17")
    await held(api, one)
    assert (await api.client.post(DISCARDS, json=ref(one))).status_code == 204
    assert await names(api) == []
    problem_of(await api.client.post(DISCARDS, json=ref(one)), 404, "not-found")
    problem_of(await api.client.post(RETRIES, json=ref(one)), 404, "not-found")


async def test_items_of_masters_cannot_be_discarded(api: Api) -> None:
    one = item(ItemKind.INSTANCE, "7", consumer=ItemConsumer.MASTERS)
    await held(api, one)
    answer = await api.client.post(DISCARDS, json=ref(one))
    refused = problem_of(answer, 422, "invalid-request")
    assert refused["errors"][0]["field"] == "consumer"
    assert await names(api) == ["7"]


@pytest.mark.parametrize("name", ["x", "9" * 200, "²", "-1", str(2**63)])
async def test_items_with_odd_names_are_no_ids(api: Api, name: str) -> None:
    for kind in (ItemKind.MESSAGE, ItemKind.ALERT):
        one = item(kind, name)
        await held(api, one)
        assert (await api.client.post(RETRIES, json=ref(one))).status_code == 202
        await held(api, one)
        assert (await api.client.post(DISCARDS, json=ref(one))).status_code == 204


async def test_skipped_items_degrade_the_health_until_they_are_discarded(api: Api) -> None:
    session = api.services.cluster.session

    async def status() -> str:
        found: str = (await api.client.get(f"{PREFIX}/health")).json()["status"]
        return found

    async with (
        Membership(session, layout.MASTERS, "m1", {}),
        Membership(session, layout.WORKERS, "w1", {"group": "g", "slots": 4}),
    ):
        async with asyncio.timeout(DEADLINE_S):
            while await status() != "ok":
                await asyncio.sleep(0.05)
        one = item(ItemKind.EVENT, "17")
        await held(api, one)
        assert await status() == "degraded"
        await api.client.post(DISCARDS, json=ref(one))
        assert await status() == "ok"
