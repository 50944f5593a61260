"""Thousands of DEPENDENT tasks wait: a check costs a few queries, whatever their number."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.run import Action, Run
from shoal.core.runs.states import TaskState
from shoal.master.engine.engine import Engine
from shoal.master.services.dependencies import DependencyWatcher
from shoal.sql import Database
from shoal.sql.repositories.runs.dependencies import Wait
from tests.integration.master.contexts import context_of
from tests.integration.master.statements import noted_reads
from tests.integration.sql.given import PARTITIONS, created, published
from tests.support.clock import utc_now
from tests.support.waiting import DEADLINE_S, eventually

pytestmark = pytest.mark.usefixtures("each_query_once")

TASKS = 600
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def spec(name: str, task: dict[str, Any]) -> WorkflowSpec:
    return WorkflowSpec.model_validate(
        {"project": "demo", "name": name, "tasks": [{"name": "a", **task}]}
    )


class Harness:
    """An engine with a watcher, which checks when a test calls it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.engine = Engine(database, self._perform, utc_now)
        self.notified: list[int] = []
        context = context_of(database, self.engine, notify_owners=self.notified.extend)
        self.watcher = DependencyWatcher(context)
        self.engine.register(self.watcher)

    async def _perform(self, performed: Any) -> None:
        run: Run
        actions: tuple[Action, ...]
        for run, actions in performed:
            for action in actions:
                self.watcher.on_action(run, action)

    def states(self) -> set[TaskState]:
        return {run.attempts["a"].state for run in self.engine.runs.values()}


@asynccontextmanager
async def opened(tmp_path: Path) -> AsyncIterator[Harness]:
    async with Database(f"sqlite:///{tmp_path}/shoal.db") as database:
        await database.migrate()
        async with database.unit_of_work() as uow:
            await uow.partitions.ensure(PARTITIONS)
            await uow.commit()
        harness = Harness(database)
        working = asyncio.create_task(harness.engine.run())
        try:
            yield harness
        finally:
            working.cancel()
            await eventually(working.done)


async def test_look_at_many_costs_few_queries(tmp_path: Path) -> None:
    async with opened(tmp_path) as harness:
        when = {"all": [{"workflow": w, "date": "last7Days"} for w in ("up", "none")]}
        dependent = {"type": "DEPENDENT", "params": {"when": when}}
        await published(
            harness.database, spec("up", {"type": "SHELL", "params": {"script": "true"}})
        )
        down = await published(harness.database, spec("down", dependent))
        # Each for a day of its own, so that none of them asks for the same.
        for day in range(6):
            at = NOON + timedelta(days=11 * day)
            await created(harness.database, down, TASKS // 6, logical_time=at)
        await harness.engine.take({0: 1}, "test")
        await eventually(lambda: len(harness.watcher._watched) == TASKS)
        statements = await noted_reads(harness.database)
        async with asyncio.timeout(DEADLINE_S):
            await harness.watcher.check()
        assert 0 < len(statements) <= 12
        await eventually(
            lambda: all(run.attempts["a"].reason for run in harness.engine.runs.values())
        )
        assert harness.states() == {TaskState.RUNNING}


async def test_ends_of_a_workflow_that_nobody_waits_for_are_asked_about_now_and_then(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path) as harness:
        up = await published(harness.database, spec("up", {"type": "SHELL", "enabled": False}))
        await created(harness.database, up, 1)
        await harness.engine.take({0: 1}, "test")
        asked = await noted_reads(harness.database)
        looking = asyncio.create_task(harness.watcher.run())
        await eventually(lambda: any("dependency_wait" in one for one in asked))
        began, before = time.monotonic(), len(asked)
        for end in range(20):
            await created(harness.database, up, 1)
            await harness.engine.take({0: 2 + end}, "test")
            await eventually(lambda: not harness.engine.runs)
        # A last time after the last end.
        await eventually(lambda: any("JOIN dependency_wait" in one for one in asked[before:]))
        questions = [one for one in asked[before:] if "JOIN dependency_wait" in one]
        assert len(questions) <= 2 + (time.monotonic() - began) / 0.9
        looking.cancel()


async def test_who_waits_since_nobody_did_is_told_of_the_next_end(tmp_path: Path) -> None:
    async with opened(tmp_path) as harness:
        up = await published(harness.database, spec("up", {"type": "SHELL", "enabled": False}))
        await created(harness.database, up, 1)
        asked = await noted_reads(harness.database)
        looking = asyncio.create_task(harness.watcher.run())
        await harness.engine.take({0: 1}, "test")
        await eventually(lambda: any("JOIN dependency_wait" in one for one in asked))
        async with (
            harness.database.unit_of_work() as uow
        ):  # of another master, in another partition
            await uow.dependencies.register([Wait(999, up, 999, 1)])
            await uow.commit()
        assert not harness.notified
        await created(harness.database, up, 1)
        await harness.engine.take({0: 2}, "test")
        await eventually(lambda: harness.notified == [1])
        looking.cancel()
