"""A task whose texts, items or dates cannot be computed fails with a reason; its run goes on."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.core.logic.intervals import CYCLES
from shoal.core.runs.quarantine import ItemConsumer
from shoal.core.runs.states import TaskState, WorkflowState
from tests.integration.master.conftest import Bench
from tests.integration.master.services.dependents import ON_SQLITE

FIRST = datetime(1, 1, 2, tzinfo=UTC)
LAST = datetime(9999, 12, 30, 23, 59, 59, tzinfo=UTC)
NORMAL = datetime(2026, 3, 2, 6, tzinfo=UTC)
MAP = {"type": "MAP", "params": {"workflow": "child", "items": "${x}"}}
DIGITS = "9" * 5_000


def dependent(date: str) -> dict[str, Any]:
    return {"type": "DEPENDENT", "params": {"when": {"workflow": "up", "date": date}}}


def script(text: str) -> dict[str, Any]:
    return {"type": "SHELL", "params": {"script": text}}


ITEMS = ("[" * 100_000, "{" * 100_000, DIGITS, f"[{DIGITS}", "NaN", "17", "null", '"', "[1,]")


@ON_SQLITE
@pytest.mark.parametrize("items", ITEMS, ids=range(len(ITEMS)))
async def test_items_that_are_no_list_fail_the_task(bench: Bench, items: str) -> None:
    await bench.publish({"a": {}}, name="child")
    workflow = await bench.publish({"m": MAP}, parameters={"x": ""})
    async with bench.master():
        run = await bench.start(workflow, parameters={"x": items})
        assert await bench.ended(run.id) is WorkflowState.FAILED
    [task] = await bench.tasks(run.id)
    assert "items must be a JSON list" in (task.reason or "")
    assert len(task.reason or "") < 1_000
    await nothing_quarantined(bench)


@ON_SQLITE
@pytest.mark.parametrize("moment", [FIRST, LAST], ids=["1", "9999"])
@pytest.mark.parametrize("timezone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12"])
async def test_dates_outside_the_calendar_fail_the_task(
    bench: Bench, moment: datetime, timezone: str
) -> None:
    dates = [date for cycle in CYCLES.values() for date in cycle]
    tasks = {f"d{n}": dependent(date) for n, date in enumerate(dates)}
    await bench.publish({"a": {}}, name="up")
    workflow = await bench.publish(tasks, timezone=timezone)
    async with bench.master():
        run = await bench.start(workflow, logical_time=moment, timezone=timezone)
        other = await bench.start(await bench.publish({"a": {"enabled": False}}, name="good"), "k2")
        assert await bench.ended(other.id) is WorkflowState.SUCCEEDED
        found = {task.task: task for task in await bench.tasks(run.id)}
    failed = [task for task in found.values() if task.state is TaskState.FAILED]
    assert failed
    for task in failed:
        assert "lies outside the years 1 to 9999" in (task.reason or "")
    for n, date in enumerate(dates):  # all others wait
        assert found[f"d{n}"].state in (TaskState.FAILED, TaskState.RUNNING), date
    await nothing_quarantined(bench)


@ON_SQLITE
@pytest.mark.parametrize(
    "text",
    [
        "$[yyyyMMdd-99999999]",
        "$[add_months(yyyyMMdd,-99999999)]",
        "$[this_day(-99999999)]",
        "$[yyyyMMdd+" + DIGITS + "]",
        "$[year_week(yyyy-MM-dd)]",
        "$[month_begin(yyyyMMdd,-99999)]",
        "$[last_day(yyyyMMdd)]",
        "$[" * 1_000,
        "${" * 1_000,
    ],
)
@pytest.mark.parametrize("moment", [FIRST, NORMAL, LAST], ids=["1", "now", "9999"])
async def test_macros_without_a_value_quarantine_no_run(
    bench: Bench, text: str, moment: datetime
) -> None:
    """A child is given the text: the master renders it when it decides."""
    await bench.publish({"a": {"enabled": False}}, name="child")
    params = {"workflow": "child", "parameters": {"y": "${x}"}}
    workflow = await bench.publish(
        {"s": {"type": "SUB_WORKFLOW", "params": params}}, parameters={"x": ""}
    )
    async with bench.master():
        run = await bench.start(workflow, parameters={"x": text}, logical_time=moment)
        ended = await bench.ended(run.id)
    [task] = await bench.tasks(run.id)
    if ended is WorkflowState.FAILED:
        assert task.reason
        assert len(task.reason) < 2_000
    await nothing_quarantined(bench)


async def nothing_quarantined(bench: Bench) -> None:
    async with bench.database.unit_of_work(read_only=True) as uow:
        assert await uow.quarantine.list(consumer=ItemConsumer.MASTERS) == []
