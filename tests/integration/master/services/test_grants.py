"""DEPENDENT tasks see runs of other projects as far as those let them."""

from datetime import datetime

from shoal.core.access.grants import Grant
from shoal.core.runs.states import WorkflowState
from tests.integration.master.conftest import Bench, give
from tests.integration.master.services.dependents import DAY, ON_SQLITE, reason, waiting

W = WorkflowState


@ON_SQLITE
async def test_runs_of_another_project_are_as_if_they_were_not_until_it_lets_them_be_seen(
    bench: Bench,
) -> None:
    up = await bench.publish({"a": {}}, name="up", project="theirs")
    async with bench.master(scan_interval_s=0.5):
        run = await bench.start(up, logical_time=DAY)
        await (await bench.worker("w")).work(1)
        assert await bench.ended(run.id) is W.SUCCEEDED
        item = {"workflow": "up", "project": "theirs", "date": "today"}
        down = await waiting(bench, **item)
        hidden = (await reason(bench, down, "theirs")).reason
        missing = await waiting(bench, "missing", **{**item, "workflow": "none"})
        same = (await reason(bench, missing, "theirs")).reason
        assert (hidden or "").replace("/up", "/none") == same
        await give(bench.database, "theirs", "default", Grant.SEE)
        assert await bench.ended(down.id) is W.SUCCEEDED
    assert isinstance((await bench.instance(down.id)).finished_at, datetime)
