"""Workflows of one DEPENDENT task, and the reason why it waits."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.core.runs.records import Instance, TaskInstance
from tests.integration.master.conftest import Bench
from tests.support.waiting import DEADLINE_S

ON_SQLITE = pytest.mark.parametrize("bench", ["sqlite"], indirect=True)


DAY = datetime(2026, 3, 2, 6, tzinfo=UTC)


async def waiting(bench: Bench, key: str = "down", **when: Any) -> Instance:
    """Start a workflow of one DEPENDENT task for ``DAY``."""
    params = {"when": when or {"workflow": "up", "date": "today"}}
    workflow_id = await bench.publish({"d": {"type": "DEPENDENT", "params": params}}, name="down")
    return await bench.start(workflow_id, key, logical_time=DAY)


async def task_of(bench: Bench, instance: Instance) -> TaskInstance:
    (task,) = await bench.tasks(instance.id)
    return task


async def reason(bench: Bench, instance: Instance, text: str) -> TaskInstance:
    """Wait until the DEPENDENT task says what it waits for."""
    async with asyncio.timeout(DEADLINE_S):
        while text not in ((task := await task_of(bench, instance)).reason or ""):
            await asyncio.sleep(0.01)
    return task
