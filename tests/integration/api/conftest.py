"""The API around a real SQLite database and a real ZooKeeper, called in process or over HTTP."""

import asyncio
import shutil
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from shoal.api.access.tokens import ensure_token
from shoal.api.app import create_app
from shoal.api.main import open_services, serve_app
from shoal.api.server import listening
from shoal.api.services import Services
from shoal.api.settings import ApiSettings
from shoal.client.local.zookeeper import ZooKeeperServer
from shoal.core.runs.records import NewInstance
from shoal.core.runs.run import Run
from shoal.proto.tls import TlsFiles, create_identity
from shoal.runtime.settings import ClusterSettings
from shoal.sql import UnitOfWork
from tests.support.instances import create
from tests.support.waiting import DEADLINE_S, STEADY_SESSION_S

PREFIX = "/api/v1"
PARTITIONS = 4
PROBLEM = {"type", "title", "status", "detail", "instance", "request_id", "errors"}


def definition(**changes: Any) -> dict[str, Any]:
    """A small valid definition of two tasks."""
    return {
        "tasks": [
            {"name": "fetch", "type": "SHELL", "params": {"script": "echo fetch"}},
            {
                "name": "report",
                "type": "SHELL",
                "params": {"script": "echo report"},
                "depends_on": ["fetch"],
            },
        ],
        **changes,
    }


def problem_of(response: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """Check that the response is this problem document, complete and without a stack trace."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = response.json()
    assert document.keys() - {"current", "changes"} == PROBLEM
    assert document["type"] == f"/problems/{slug}"
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert document["instance"] == response.request.url.path
    assert document["request_id"] == response.headers["x-request-id"]
    assert "Traceback" not in response.text
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-content-type-options"] == "nosniff"
    return document


def fields_of(document: dict[str, Any]) -> dict[str, str]:
    """The messages of a problem by field."""
    return {error["field"]: error["message"] for error in document["errors"]}


@dataclass
class Api:
    """A running API: its client (with the token) and what stands behind it."""

    client: httpx.AsyncClient
    services: Services

    async def make(self, project: str) -> None:
        """Make a project if it is missing."""
        await self.store(lambda uow: uow.projects.ensure(project))

    async def publish(self, name: str = "daily", project: str = "p", **changes: Any) -> Any:
        """Publish the small definition with changes; return the answer. The project is made."""
        await self.make(project)
        answer = await self.client.put(
            f"{PREFIX}/projects/{project}/workflows/{name}", json=definition(**changes)
        )
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    async def command(self, **body: Any) -> Any:
        """Post a command; return the answer."""
        answer = await self.client.post(f"{PREFIX}/commands", json=body)
        assert answer.status_code == 202, answer.text
        return answer.json()

    async def run(self, name: str = "daily", project: str = "p", **parameters: str) -> Run:
        """Publish, start and do what a master does with the command: create the instance."""
        await self.publish(name, project)
        return await self.started(name, project, **parameters)

    async def started(self, name: str, project: str, **parameters: str) -> Run:
        """Start what is published, and create the instance."""
        command = await self.command(type="START", project=project, workflow=name)
        now = datetime.now(UTC)
        async with self.services.store.unit_of_work() as uow:
            stored = await uow.commands.get(command["id"])
            new = NewInstance(
                command_id=stored.id,
                workflow_id=stored.workflow_id,
                version=1,
                partition=stored.partition,
                priority=2,
                parameters=parameters,
                logical_time=now,
                created_at=now,
                admitted_at=now,
            )
            [run] = await create(uow, [new])
            await uow.commands.done(stored.id, run.id, now)
            await uow.commit()
        return run

    async def store(self, write: Callable[[UnitOfWork], Awaitable[object]]) -> None:
        """Run ``write`` in a transaction."""
        async with self.services.store.unit_of_work() as uow:
            await write(uow)
            await uow.commit()


def new_cluster(folder: Path, zookeeper: str, migrated_file: Path) -> ClusterSettings:
    """Settings of a cluster with a data folder of its own, and a database in it."""
    data = folder / "data folder"
    create_identity(TlsFiles.inside(data / "tls").ca.parent)
    shutil.copy(migrated_file, data)
    return ClusterSettings(
        data=data,
        zookeeper=zookeeper,
        partitions=PARTITIONS,
        session_timeout_s=STEADY_SESSION_S,
        history_url=str(data / "history"),
    )


@asynccontextmanager
async def opened(cluster: ClusterSettings, settings: ApiSettings) -> AsyncIterator[Services]:
    """What an API works with, opened as ``serve`` does. The project p is there."""
    token = ensure_token(cluster.token_file)
    async with AsyncExitStack() as stack:
        services = await open_services(stack, settings, cluster, token, asyncio.Event())
        async with services.store.unit_of_work() as uow:
            await uow.projects.ensure("p")
            await uow.commit()
        yield services


@asynccontextmanager
async def in_process(services: Services) -> AsyncIterator[Api]:
    """The application called without a socket."""
    headers = {"Authorization": f"Bearer {services.token}"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(services)),
        base_url="http://localhost",
        headers=headers,
    ) as client:
        yield Api(client, services)


@pytest.fixture
def cluster(tmp_path: Path, zk_chroot: str, migrated_file: Path) -> ClusterSettings:
    """Settings of a cluster for one test."""
    return new_cluster(tmp_path, zk_chroot, migrated_file)


@pytest.fixture
def settings() -> ApiSettings:
    """Settings of an API on a free port."""
    return ApiSettings(port=0)


@pytest.fixture
async def services(cluster: ClusterSettings, settings: ApiSettings) -> AsyncIterator[Services]:
    """The services of one test."""
    async with opened(cluster, settings) as found:
        yield found


@pytest.fixture
async def api(services: Services) -> AsyncIterator[Api]:
    """The API of one test."""
    async with in_process(services) as found:
        yield found


@pytest.fixture(scope="module")
def module_cluster(
    tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeperServer, migrated_file: Path
) -> ClusterSettings:
    """Settings of a cluster for all tests of a module."""
    chroot = f"{zookeeper.address}/test-{uuid.uuid4().hex}"
    return new_cluster(tmp_path_factory.mktemp("api"), chroot, migrated_file)


@pytest.fixture
async def live(services: Services) -> AsyncIterator[Api]:
    """The application served over a real socket, for streams."""
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    headers = {"Authorization": f"Bearer {services.token}"}
    with listening(services.settings) as listener:
        task = asyncio.create_task(serve_app(services, listener, url.set_result))
        try:
            async with httpx.AsyncClient(
                base_url=await url, headers=headers, timeout=DEADLINE_S, trust_env=False
            ) as client:
                yield Api(client, services)
        finally:
            services.streams.stopping.set()
            await task
