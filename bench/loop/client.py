"""Who asks master and API of the loop that is watched: by REST, and as a worker done by hand."""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import httpx

from bench.loop.steps import Steps
from shoal.coordination import TaskClaim
from shoal.core.runs.states import TaskState
from shoal.proto import shoal_pb2 as pb
from shoal.proto.channels import call
from shoal.sql import Database
from tests.integration.master.manual_worker import HandWorker

PREFIX = "/api/v1"
BATCH = 100  # tasks that the worker claims, and ends, together
PATIENCE_S = 600.0
_LOOK_S = 0.05


class Client:
    """Asks the API, and works for the masters; lives in a loop of its own."""

    def __init__(
        self, http: httpx.AsyncClient, database: Database, worker: HandWorker, steps: Steps
    ) -> None:
        self.http, self.database, self.worker, self._steps = http, database, worker, steps
        self.took_s: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Name what follows."""
        self._steps.phase = name
        began_s = time.monotonic()
        yield
        self.took_s[name] = time.monotonic() - began_s
        self._steps.phase = "between"
        sys.stderr.write(f"{name}: {self.took_s[name]:.1f} s\n")

    async def put(self, name: str, content: dict[str, Any]) -> None:
        """Publish a definition."""
        path = f"{PREFIX}/projects/default/workflows/{name}"
        (await self.http.put(path, json=content)).raise_for_status()

    async def get(self, path: str) -> bytes:
        """Return what the API answers, unread."""
        answer = await self.http.get(f"{PREFIX}{path}")
        answer.raise_for_status()
        return answer.content

    async def command(self, **body: Any) -> int:
        """Ask for something; return the instance it is about once it has been carried out."""
        answer = await self.http.post(f"{PREFIX}/commands", json=body)
        answer.raise_for_status()
        path = f"{PREFIX}/commands/{answer.json()['id']}"
        async with asyncio.timeout(PATIENCE_S):
            while (found := (await self.http.get(path)).json())["state"] == "PENDING":  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)
        if found["state"] != "DONE":
            raise SystemExit(f"{body}: {found}")
        return int(found["result_instance_id"] or found["instance_id"])

    async def purge(self) -> None:
        """Have all that has ended deleted, and wait for it."""
        before = datetime.now(UTC).isoformat()
        body = {"before": before, "even_if_not_exported": True}  # the export may be behind
        answer = await self.http.post(f"{PREFIX}/purges", json=body)
        answer.raise_for_status()
        path = f"{PREFIX}/purges/{answer.json()['id']}"
        async with asyncio.timeout(PATIENCE_S):
            while (await self.http.get(path)).json()["finished_at"] is None:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)

    async def until(self, instance: int, state: TaskState, tasks: int) -> None:
        """Wait until so many tasks of an instance are in a state."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                async with self.database.unit_of_work(read_only=True) as uow:
                    counts = (await uow.instance_counts.tasks([instance]))[instance]
                if counts.get(state, 0) >= tasks:
                    return
                await asyncio.sleep(_LOOK_S)

    async def until_in_queue(self, tasks: int) -> None:
        """Wait until so many entries are in the queue."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.worker.queue.depth("default") < tasks:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)

    async def until_queue_is_empty(self) -> None:
        """Wait until nothing is in the queue."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.worker.queue.depth("default"):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)

    async def end(self, tasks: int, kind: "pb.ReportKind.ValueType" = pb.SUCCEEDED) -> None:
        """Claim and end so many tasks."""
        while tasks > 0:
            claims = await self.worker.claim(min(tasks, BATCH))
            while not await self._fetched(claims):  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_S)
            await asyncio.gather(*(self.worker.report(one, kind) for one in claims))
            await self.worker.queue.release(claims, ended=True)
            tasks -= len(claims)

    async def _fetched(self, claims: Sequence[TaskClaim]) -> bool:
        """Ask for all payloads at once; whether all were granted."""
        entry = claims[0].entry
        refs = [
            pb.AttemptRef(
                workflow_instance_id=one.entry.workflow_instance_id,
                task_instance_id=one.entry.task_instance_id,
                partition=one.entry.partition,
            )
            for one in claims
        ]
        self.worker.forget(claims[0])
        address = await self.worker._address(entry.partition)
        request = pb.FetchRequest(worker_id=self.worker.id, attempts=refs)
        stub = self.worker._channels.master(address)
        answer = await call(address, stub.Fetch(request, timeout=60.0))
        return all(one.HasField("payload") for one in answer.verdicts)
