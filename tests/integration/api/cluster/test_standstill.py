"""Health of a cluster whose members live and whose work stands still."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import update

from shoal.api.operations.cluster.ownership import OwnershipWatch
from shoal.api.settings import ApiSettings
from shoal.coordination import TreeKeeper
from shoal.coordination.cluster import layout
from shoal.coordination.cluster.membership import Membership
from shoal.coordination.errors import BindingRefused
from shoal.core.runs.quarantine import ItemKind, QuarantinedItem
from shoal.runtime.settings import ClusterSettings
from shoal.sql import UnitOfWork
from shoal.sql.schema.tables import command
from shoal.sql.tree_binding import TreeBinding
from tests.integration.api.conftest import PARTITIONS, PREFIX, Api, in_process, opened
from tests.integration.api.fake_worker import seen
from tests.support.waiting import DEADLINE_S

ABOUT = {"address": "127.0.0.1:1"}
OWNER = b'{"owner_id": "m1", "address": "127.0.0.1:1"}'


@asynccontextmanager
async def owned_by_m1(api: Api) -> AsyncIterator[tuple[Api, Membership]]:
    """An API whose partitions are owned by master m1, in ZooKeeper and in the database."""
    services, view = api.services, api.services.cluster
    session = view.session
    epochs = {}
    for number in range(PARTITIONS):
        node = await session.create(layout.owner(number), OWNER, ephemeral=True)
        epochs[number] = node.czxid
    await api.store(lambda uow: uow.partitions.raise_epochs(epochs, "m1"))
    keeper = TreeKeeper(session, PARTITIONS, view.ownership._keeper.binding)
    async with (
        Membership(session, layout.MASTERS, "m1", ABOUT) as master,
        Membership(session, layout.WORKERS, "w1", {**ABOUT, "group": "g"}),
        # The sessions of these tests live longer than a test may wait for a partition.
        OwnershipWatch(view.owners, services.store.database, keeper, PARTITIONS, 2.0) as ownership,
        in_process(replace(services, cluster=replace(view, ownership=ownership))) as watched,
    ):
        await seen(watched.services, "w1", present=True)
        async for masters in watched.services.cluster.masters.changes():
            if "m1" in masters:
                break
        await partitions_are(watched, ok=True)
        assert (await watched.client.get(f"{PREFIX}/health")).json()["status"] == "ok"
        yield watched, master


async def test_partitions_without_an_owner_for_long_degrade_the_cluster(api: Api) -> None:
    session = api.services.cluster.session
    async with owned_by_m1(api) as (watched, _):
        await session.delete(layout.owner(1))
        await session.set(layout.owner(2), b"\xff\x00")  # an owner that cannot be found is none
        check = await partitions_are(watched, ok=False)
        assert check["detail"].startswith(f"2 of {PARTITIONS} partitions have had no owner")
        assert check["detail"].endswith(": 1, 2")
        found = (await watched.client.get(f"{PREFIX}/health")).json()
        assert (found["status"], found["masters"], found["workers"]) == ("degraded", 1, 1)
        await session.set(layout.owner(2), OWNER)
        node = await session.create(layout.owner(1), OWNER, ephemeral=True)
        await api.store(lambda uow: uow.partitions.raise_epoch(1, node.czxid, "m1"))
        await partitions_are(watched, ok=True)


async def test_partitions_with_two_owners_for_long_degrade_the_cluster(api: Api) -> None:
    ready = f"{PREFIX}/health/ready"
    async with owned_by_m1(api) as (watched, _):
        await api.store(lambda uow: uow.partitions.raise_epochs({2: 2**40}, "stranger"))
        check = await partitions_are(watched, ok=False)
        node = await api.services.cluster.session.exists(layout.owner(2))
        assert node is not None
        assert check["detail"] == (
            f"1 of {PARTITIONS} partitions have had different owners in ZooKeeper and in the "
            f"database for 2 s or more: 2; owners in ZooKeeper: m1 (epoch {node.czxid}); in the "
            f"database: stranger (epoch {2**40})"
        )
        answer = await watched.client.get(ready)
        assert (answer.status_code, answer.json()["status"]) == (200, "degraded")
        every = dict.fromkeys(range(PARTITIONS), 2**41)
        await api.store(lambda uow: uow.partitions.raise_epochs(every, "stranger"))
        async with asyncio.timeout(DEADLINE_S):
            while (await watched.client.get(ready)).status_code != 503:
                await asyncio.sleep(0.05)
        # The owner takes them again, with an epoch above that of a lost tree.
        every = dict.fromkeys(range(PARTITIONS), 2**41 + 1)
        await api.store(lambda uow: uow.partitions.raise_epochs(every, "m1"))
        await partitions_are(watched, ok=True)
        assert (await watched.client.get(ready)).status_code == 200


async def test_owner_that_the_database_does_not_know_yet_degrades_the_cluster(api: Api) -> None:
    async with owned_by_m1(api) as (watched, _):
        session = api.services.cluster.session
        await session.delete(layout.owner(3))
        await session.create(layout.owner(3), OWNER, ephemeral=True)
        assert "different owners" in (await partitions_are(watched, ok=False))["detail"]


async def test_commands_that_stay_pending_degrade_the_cluster(api: Api) -> None:
    await api.publish()
    async with owned_by_m1(api) as (watched, master):
        await api.command(type="START", project="p", workflow="daily")
        found = await commands_are(watched, ok=True)
        assert found["detail"] == "none has been pending for more than 30 s"
        await age_commands(api, 95)
        found = await commands_are(watched, ok=False)
        assert re.fullmatch(
            r"1 command has been pending for more than 30 s, the oldest \(command \d+\) for 9\d s, "
            rf"in 1 of {PARTITIONS} partitions: \d",
            found["detail"],
        )
        assert (await watched.client.get(f"{PREFIX}/health")).json()["status"] == "degraded"
        # A master that is full leaves starts pending, and is right to.
        await master.update({**ABOUT, "full": True})
        await commands_are(watched, ok=True)


async def test_quarantined_commands_are_pending_with_good_reason(api: Api) -> None:
    await api.publish()
    run = await api.run()
    async with owned_by_m1(api) as (watched, _):
        start = await api.command(type="START", project="p", workflow="daily")
        stop = await api.command(type="STOP", instance_id=run.id)
        await age_commands(api, 95)
        assert (await commands_are(watched, ok=False))["detail"].startswith("2 commands have")
        now = datetime.now(UTC)
        for kind, item in ((ItemKind.COMMAND, start["id"]), (ItemKind.INSTANCE, run.id)):
            one = QuarantinedItem(kind, str(item), 0, "unreadable", 1, now)
            await api.store(partial(_quarantine, one))
        assert stop["id"]
        await commands_are(watched, ok=True)


async def _quarantine(one: QuarantinedItem, uow: UnitOfWork) -> None:
    await uow.quarantine.put([one])


async def age_commands(api: Api, by_s: float) -> None:
    """Let all commands have been accepted earlier."""
    at = datetime.now(UTC) - timedelta(seconds=by_s)
    async with api.services.store.unit_of_work() as uow:
        await uow.connection.execute(update(command).values(created_at=at))
        await uow.commit()


async def commands_are(api: Api, *, ok: bool) -> dict[str, str]:
    return await check_is(api, "commands", ok=ok)


async def partitions_are(api: Api, *, ok: bool) -> dict[str, str]:
    return await check_is(api, "partitions", ok=ok)


async def check_is(api: Api, name: str, *, ok: bool) -> dict[str, str]:
    """Return a check of /health, as soon as it is ``ok`` or not."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            found = (await api.client.get(f"{PREFIX}/health")).json()["checks"][name]
            if found["ok"] is ok:
                return dict(found)
            await asyncio.sleep(0.05)


async def test_api_does_not_start_in_another_tree(
    api: Api, cluster: ClusterSettings, settings: ApiSettings
) -> None:
    wrong = cluster.model_copy(update={"zookeeper": f"{cluster.zookeeper}/typo"})
    with pytest.raises(BindingRefused, match="/typo belongs to no cluster yet"):
        async with opened(wrong, settings):
            pass
    assert api.services.cluster.session.path in cluster.zookeeper


async def test_api_whose_database_was_bound_to_another_tree_is_not_ready(api: Api) -> None:
    store = TreeBinding(api.services.store.database)
    async with owned_by_m1(api) as (watched, _):
        assert (await watched.client.get(f"{PREFIX}/health/ready")).status_code == 200
        seen = await store.read()
        assert await store.bind("theirs", "zk:2181/moved", seen, even_if_alive=True)
        found = await check_is(watched, "zookeeper", ok=False)
        assert "tree theirs at zk:2181/moved" in found["detail"]
        assert str(seen.tree) in found["detail"]
        assert (await watched.client.get(f"{PREFIX}/health/ready")).status_code == 503
