"""Rows that cannot be read: the other workflows are shown, and lists of runs do not suffer."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from shoal.core.runs.states import TaskState, WorkflowState
from tests.integration.api.conftest import PREFIX, Api
from tests.integration.api.views.runs import happened
from tests.support.insight import rollups

JUNK = ("17", "[17]", '[{"a": 1}]', "[]", '[{"runs": "x"}]')
#: What shows the workflows of a result, and where in the answer.
SHOWN = {
    "workflow_days": "insight/workflows",
    "task_days": "insight/workflows",
    "costs": "insight/costs",
    "failures": "insight/failures",
    "baselines": "insight/rollup-rows?job=baselines&day=2026-01-31",
    "schedule_moves": "insight/schedule-minutes",
}


async def spoil(api: Api, job: str, body: str) -> None:
    """Write something into the block of the workflow ``bad``, past everything that checks."""
    async with api.services.store.unit_of_work() as uow:
        batch = "(SELECT batch FROM rollup_day WHERE job = :job)"
        change = text(f"UPDATE rollup SET body = :body WHERE project = 'bad' AND batch = {batch}")
        await uow.connection.execute(change, {"job": job, "body": body})
        again = text("UPDATE rollup_day SET digest = digest || '+' WHERE job = :job")
        await uow.connection.execute(again, {"job": job})
        await uow.commit()


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("job", SHOWN)
async def test_junk_in_a_block_hides_nothing_else(api: Api, job: str, junk: str) -> None:
    for project in ("good", "bad"):
        await rollups.stock(api.services.store.database, project)
    await spoil(api, job, junk)
    answer = await api.client.get(f"{PREFIX}/{SHOWN[job]}")
    assert answer.status_code == 200, answer.text
    assert "good" in answer.text
    summary = await api.client.get(f"{PREFIX}/insight/summary")
    assert summary.json()["total"]["runs"] in (1, 2)


@pytest.mark.parametrize("column", ["p50_s", "n", "late_after_s", "task", "hour"])
@pytest.mark.parametrize("junk", ["x", None, [], True])
async def test_junk_in_a_baseline_does_not_touch_runs(api: Api, column: str, junk: Any) -> None:
    await api.publish("daily", "bad")
    await rollups.stock(api.services.store.database, "bad")
    tasks = {"fetch": TaskState.RUNNING}
    run = await happened(
        api, "daily", "bad", at=datetime.now(UTC), state=WorkflowState.RUNNING, tasks=tasks
    )
    rows = [{**row, column: junk} for row in rollups.EVERY["baselines"]]
    await spoil(api, "baselines", json.dumps(rows))
    for path in (
        "instances",
        f"instances/{run.id}",
        f"instances/{run.id}/baseline",
        f"instances/{run.id}/why",
        "today",
    ):
        answer = await api.client.get(f"{PREFIX}/{path}")
        assert answer.status_code == 200, f"{path}: {answer.text}"
        assert "daily" in answer.text
