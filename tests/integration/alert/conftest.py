"""A cluster with alert servers that come and go, and a sink for what they send."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from shoal.alert.main import serve
from shoal.alert.settings import AlertSettings
from shoal.core.alerts.receivers import ChannelSpec, ReceiverSpec
from shoal.core.alerts.records import Alert, AlertDelivery, DefinitionKind
from shoal.core.alerts.rules import RuleSpec
from shoal.core.runs.quarantine import ItemConsumer, QuarantinedItem
from shoal.runtime.settings import ClusterSettings
from shoal.runtime.vault import Vault, create_key
from shoal.sql import Database
from shoal.sql.repositories.events import NewEvent
from tests.support.database.databases import migrated_url
from tests.support.servers.http_server import HttpServer, Received, answer, says
from tests.support.waiting import DEADLINE_S, SERVICE_SESSION_S

_K = DefinitionKind
_MODELS: dict[DefinitionKind, type[BaseModel]] = {
    _K.RULE: RuleSpec,
    _K.RECEIVER: ReceiverSpec,
    _K.CHANNEL: ChannelSpec,
}


@dataclass
class Site:
    """A project whose webhook "hook" leads to ``sink``."""

    cluster: ClusterSettings
    database: Database
    sink: HttpServer
    project: str = "p"

    async def define(
        self, of: DefinitionKind, name: str, spec: dict[str, Any], at: datetime | None = None
    ) -> None:
        """Define something, checked as the API checks it; ``at`` None: now."""
        checked, at = _MODELS[of].model_validate(spec).model_dump(mode="json"), at or _now()
        async with self.database.unit_of_work() as uow:
            await uow.projects.ensure(self.project, at)
            await uow.alert_definitions.put(self.project, of, name, checked, at)
            await uow.commit()

    async def channel(self, name: str = "hook", **spec: Any) -> None:
        """A channel, a webhook to the sink unless ``spec`` says otherwise."""
        standard = {"kind": "webhook", "options": {"url": f"{self.sink.url}/{name}"}}
        await self.define(_K.CHANNEL, name, standard | spec)

    async def rule(self, name: str = "failures", at: datetime | None = None, **spec: Any) -> None:
        """A rule about runs that fail, at once, for the receiver "ops"."""
        standard = {"triggers": ["run.failed"], "receivers": ["ops"], "group_for": 0}
        await self.define(_K.RULE, name, standard | spec, at)

    async def receiver(self, name: str = "ops", *targets: dict[str, Any], **spec: Any) -> None:
        """A receiver, told by the hook unless there are ``targets``."""
        members = [{"targets": targets or [{"channel": "hook"}]}]
        await self.define(_K.RECEIVER, name, {"members": members} | spec)

    async def secret(self, name: str, value: str) -> None:
        """A secret of the project."""
        create_key(self.cluster.secrets_key_file)
        sealed = Vault.of(self.cluster).seal("p", name, value)
        async with self.database.unit_of_work() as uow:
            await uow.projects.ensure("p", datetime.now(UTC))
            await uow.secrets.put("p", name, sealed, datetime.now(UTC))
            await uow.commit()

    async def happens(self, *events: dict[str, Any], at: datetime | None = None) -> None:
        """Store events as masters do, in one transaction: ``kind``, ``run``, and their data."""
        at = at or datetime.now(UTC)
        made = [
            NewEvent(
                at,
                one.get("kind", "instance.state"),
                self.project,
                {key: value for key, value in one.items() if key not in ("kind", "run")},
                one.get("run"),
            )
            for one in events
        ]
        async with self.database.unit_of_work() as uow:
            await uow.projects.ensure(self.project, at)
            await uow.projects.set_description(
                self.project, f"written at {at}"
            )  # events never come first
            await uow.events.add(made)
            await uow.commit()

    async def fails(self, workflow: str = "daily", run: int = 1, **data: Any) -> None:
        """A run fails."""
        await self.happens({"workflow": workflow, "state": "FAILED", "run": run, **data})

    async def succeeds(self, workflow: str = "daily", run: int = 1) -> None:
        """A run succeeds."""
        await self.happens({"workflow": workflow, "state": "SUCCEEDED", "run": run})

    @asynccontextmanager
    async def server(self, **settings: Any) -> AsyncIterator[asyncio.Task[None]]:
        """An alert server; it leaves in order unless the test has cancelled it."""
        stop = asyncio.Event()
        options = {"poll_s": 0.05, "http_allow": "127.0.0.0/8", **settings}
        task = asyncio.create_task(serve(AlertSettings(**options), self.cluster, stop))
        try:
            yield task
        finally:
            stop.set()
            await asyncio.gather(task, return_exceptions=True)

    def got(self, path: str = "/hook") -> list[Any]:
        """The facts that the sink was sent to a path."""
        return [json.loads(one.body) for one in self.sink.received if one.target == path]

    def requests(self, path: str = "/hook") -> list[Received]:
        """The requests to a path."""
        return [one for one in self.sink.received if one.target == path]

    async def until(self, count: int, path: str = "/hook") -> list[Any]:
        """Wait until the sink has so many requests to a path; return their facts."""
        async with asyncio.timeout(DEADLINE_S):
            while len(self.got(path)) < count:
                await asyncio.sleep(0.02)
        return self.got(path)

    async def alerts(self) -> list[Alert]:
        """All alerts, the first one first."""
        async with self.database.unit_of_work(read_only=True) as uow:
            return (await uow.alerts.list(self.project, limit=100_000))[::-1]

    async def deliveries(self) -> list[AlertDelivery]:
        """All messages, the first one first."""
        async with self.database.unit_of_work(read_only=True) as uow:
            return (await uow.deliveries.list(self.project, limit=100_000))[::-1]

    async def settled(self, count: int = 1) -> list[AlertDelivery]:
        """Wait until there are so many messages, and none is to be sent any more."""
        async with asyncio.timeout(DEADLINE_S):
            while True:
                found = await self.deliveries()
                if len(found) >= count and all(one.state not in _UNSENT for one in found):
                    return found
                await asyncio.sleep(0.02)

    async def quarantined(self) -> list[QuarantinedItem]:
        """What alert servers have quarantined, the newest first."""
        async with self.database.unit_of_work(read_only=True) as uow:
            return await uow.quarantine.list(1_000, ItemConsumer.ALERTS)


_UNSENT = ("PENDING", "SENDING")


def _now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(params=["sqlite", "postgresql"])
async def site(
    request: pytest.FixtureRequest, zk_chroot: str, tmp_path: Path
) -> AsyncIterator[Site]:
    cluster = ClusterSettings(
        data=tmp_path,
        zookeeper=zk_chroot,
        session_timeout_s=SERVICE_SESSION_S,
        database_url=migrated_url(request, request.param),
    )
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(cluster.database))
        sink = await stack.enter_async_context(HttpServer({"/hook": says(answer(200, "ok"))}))
        yield Site(cluster, database, sink)


@pytest.fixture
async def ready(site: Site) -> Site:
    """The site with a channel, a receiver, and a rule about failed runs."""
    await site.channel()
    await site.receiver()
    await site.rule()
    return site
