"""Much at once: what one transaction, one batch and one turn of the event loop are about."""

import asyncio
import inspect
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from shoal.core.decide import decide
from shoal.core.runs.commands import CommandType, NewCommand
from shoal.core.runs.events import (
    Event,
    StopRequested,
    TaskClaimed,
    TaskEnded,
)
from shoal.core.runs.run import Attempt, Decision, Run
from shoal.core.runs.states import TaskSignal, TaskState
from shoal.master.dispatch.rpc import MasterRpc
from shoal.master.engine import engine
from shoal.master.engine.listeners import Listener
from shoal.master.services.commands.scanner import Scanner
from shoal.proto import shoal_pb2 as pb
from shoal.runtime.secret_stores.resolver import Resolver
from shoal.runtime.secret_stores.stores import SecretStores
from shoal.runtime.vault import Vault
from tests.integration.master.contexts import context_of
from tests.integration.master.engine.engine_harness import Harness
from tests.integration.master.statements import noted_writes
from tests.support.clock import utc_now
from tests.support.waiting import eventually

pytestmark = pytest.mark.usefixtures("each_query_once")

NO_CONTEXT: Any = None  # of a gRPC call; the service does not use it


NO_STORES = Resolver(SecretStores({}))


@pytest.mark.parametrize("harness", ["sqlite"], indirect=True)
async def test_many_starts_of_a_workflow_cost_no_more_statements_than_a_few(
    harness: Harness,
) -> None:
    workflow_id = await harness.publish()
    await harness.engine.take({0: 1}, "m")
    scanner = Scanner(context_of(harness.database, harness.engine))
    statements = await noted_writes(harness.database)
    costs, noted = [], []
    for count in (1, 3, 40):  # the first one reads the definition
        new = [NewCommand(CommandType.START, 0, f"{count}-{n}", workflow_id) for n in range(count)]
        async with harness.database.unit_of_work() as uow:
            await uow.commands.add_many(new, utc_now())
            await uow.commit()
        statements.clear()
        await scanner.scan([0])
        costs.append(len(statements))
        noted.append([*statements])
    assert len(harness.engine.runs) == 44
    # Fence, definitions, ids; instances, attempts, events; outcomes of the commands.
    assert costs[2] == costs[1] == 7, noted


async def test_attempts_of_one_call_are_stored_in_one_transaction(harness: Harness) -> None:
    runs = await harness.runs(8)
    await harness.engine.take({0: 1}, "m")
    rpc = MasterRpc(harness.engine, utc_now, harness.database, Vault(Path("none")), NO_STORES)
    refs = [
        pb.AttemptRef(
            task_instance_id=run.attempts["a"].id or 0, workflow_instance_id=run.id, partition=0
        )
        for run in runs
    ]
    async with harness.working():
        await eventually(lambda: len(harness.actions) == len(runs))
        before = harness.database.writers
        fetched = await rpc.Fetch(pb.FetchRequest(worker_id="w", attempts=refs), NO_CONTEXT)
        assert harness.database.writers == before + 1
        ends = [pb.Report(attempt=ref, kind=pb.SUCCEEDED) for ref in refs]
        reported = await rpc.Report(pb.ReportRequest(worker_id="w", reports=ends), NO_CONTEXT)
        assert harness.database.writers == before + 2
    granted = [v.payload.task_instance_id for v in fetched.verdicts]
    assert granted == [ref.task_instance_id for ref in refs]
    assert [v.task_instance_id for v in reported.verdicts] == granted
    assert {v.kind for v in reported.verdicts} == {pb.ReportVerdict.COMMITTED}
    assert not harness.engine.runs


async def fans(harness: Harness, count: int, width: int) -> list[Run]:
    """Let the engine hold runs whose first task is claimed, with ``width`` others behind it."""
    names = ["a", *(f"t{number}" for number in range(width))]
    tasks = [
        {
            "name": name,
            "type": "SHELL",
            "params": {"script": "true"},
            "depends_on": [] if name == "a" else ["a"],
        }
        for name in names
    ]
    runs = await harness.runs(count, tasks=tasks)
    await harness.engine.take({0: 1}, "m")
    for run in runs:
        attempt = run.attempts["a"].id or 0
        await harness.engine.submit(0, run.id, TaskClaimed(attempt, "w", utc_now()))
    return [harness.engine.runs[run.id] for run in runs]


def end_of(run: Run, task: str) -> TaskEnded:
    return TaskEnded(run.attempts[task].id or 0, TaskSignal.SUCCEED, utc_now(), "w")


async def test_what_is_about_many_tasks_is_not_decided_in_the_event_loop(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.limit(tasks_in_a_turn=10)
    here: list[int] = []  # attempts of each decision that was made in the loop's own thread
    elsewhere: list[int] = []
    pieces: list[int] = []  # applied without a turn for others
    loop = threading.current_thread()

    def decided(run: Run, event: Event, most: int = sys.maxsize) -> Decision:
        made = decide(run, event, most)
        where = here if threading.current_thread() is loop else elsewhere
        where.append(len(made.attempts))
        return made

    def replaced(run: Run, attempts: Iterable[Attempt]) -> None:
        some = list(attempts)
        pieces.append(len(some))
        replace(run, some)

    async with harness.working():
        monkeypatch.setattr(engine, "decide", decided)
        (run,) = await fans(harness, 1, 40)
        replace = Run.replace
        monkeypatch.setattr(Run, "replace", replaced)
        await harness.engine.submit(0, run.id, end_of(run, "a"))
        await harness.engine.submit(0, run.id, StopRequested(utc_now()))
    assert max(here) <= 10
    assert elsewhere[-2:] == [41, 40]  # the end with what it starts, and the stop
    assert max(pieces) <= 10
    assert all(one.state is TaskState.KILLED for one in [*run.attempts.values()][1:])


class _Stored(Listener):
    """Notes of which runs decisions were stored, in the last of ``batches``."""

    def __init__(self, batches: list[set[int]]) -> None:
        self._batches = batches

    def on_stored(self, run: Run, decision: Decision) -> None:
        self._batches[-1].add(run.id)


async def test_batch_ends_when_it_is_about_enough_tasks(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.limit(tasks=10)
    async with harness.working():
        runs = await fans(harness, 5, 6)
        stored: list[set[int]] = []
        harness.engine.register(_Stored(stored))
        store = harness.engine._store

        async def noted(*batch: Any) -> None:
            stored.append(set())
            await store(*batch)

        monkeypatch.setattr(harness.engine, "_store", noted)
        ends = [harness.engine.enqueue(0, run.id, end_of(run, "a")) for run in runs]
        later = []  # of each run, in this order; the second batch has them
        for run in runs:
            event = TaskClaimed(run.attempts["t0"].id or 0, "w", utc_now())
            later.append(harness.engine.enqueue(0, run.id, event))
        later += [harness.engine.enqueue(0, run.id, end_of(run, "t0")) for run in runs]
        await asyncio.gather(*ends, *later)
    ids = [run.id for run in runs]
    assert stored[:2] == [set(ids[:2]), set(ids[2:4])]  # seven tasks each
    assert [run.attempts["t0"].state for run in runs] == [TaskState.SUCCEEDED] * 5


async def test_starts_of_many_transactions_do_not_stand_upon_each_other(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the memory of all of them is freed in one long step, at the end."""
    monkeypatch.setattr("shoal.master.services.commands.starts._MOST_TASKS", 1)
    workflow_id = await harness.publish()
    async with harness.database.unit_of_work() as uow:
        new = [NewCommand(CommandType.START, 0, f"k{n}", workflow_id) for n in range(5)]
        await uow.commands.add_many(new, utc_now())
        await uow.commit()
    depths: list[int] = []
    scanner = Scanner(context_of(harness.database, harness.engine))
    create = scanner._starts._create_together

    async def noted(*given: Any) -> Any:
        depths.append(len(inspect.stack(0)))
        return await create(*given)

    monkeypatch.setattr(scanner._starts, "_create_together", noted)
    async with harness.working():
        await harness.engine.take({0: 1}, "m")
        await scanner.scan({0})
    assert len(depths) == 5
    assert len(set(depths[1:])) == 1
