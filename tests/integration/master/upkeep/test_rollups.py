"""Masters load what runs of the jobs have left, soon after it is there."""

import asyncio
from datetime import date, timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from shoal.insight.history.store import HistoryStore
from shoal.master.settings import UpkeepTimes
from shoal.sql.repositories.insight.rollups import RollupDay
from tests.integration.insight.made import mark, parquet, put, row
from tests.integration.master.conftest import Bench
from tests.support.waiting import DEADLINE_S, eventually

DAY = date.today() - timedelta(days=1)


@pytest.fixture
async def root(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of results; the master looks at it often."""
    monkeypatch.setenv("SHOAL_DATABASE_URL", bench.cluster.database)  # the process reads it, too
    place = tmp_path / "history"
    bench.cluster = bench.cluster.model_copy(update={"history_url": str(place)})
    async with bench.database.unit_of_work() as uow:
        store = HistoryStore(str(place), await uow.cluster.uid())
        await uow.commit()
    return Path(store.results)


async def days(bench: Bench) -> list[RollupDay]:
    async with bench.database.unit_of_work(read_only=True) as uow:
        return await uow.rollups.days()


async def loaded(bench: Bench) -> None:
    """Wait until there are roll-ups."""
    async with asyncio.timeout(DEADLINE_S):
        while not await days(bench):
            await asyncio.sleep(0.05)


async def test_results_are_loaded_soon_after_their_run_has_ended(bench: Bench, root: Path) -> None:
    async with bench.master(upkeep=UpkeepTimes(marks=0.2), keep_rollups_days=30):
        old = DAY - timedelta(days=90)
        stored = [put(root, "costs", day, parquet("costs", [row("costs")])) for day in (DAY, old)]
        mark(root, *stored)
        await eventually(lambda: not list((root / "finished").iterdir()))
        await loaded(bench)
        assert [(one.job, one.day) for one in await days(bench)] == [("costs", DAY)]
        with capture_logs() as logs:
            mark(root, put(root, "costs", DAY, b"no parquet"))
            await eventually(lambda: any("the file is damaged" in str(one) for one in logs))
        assert [one.digest for one in await days(bench)] == [stored[0].sha256]


async def test_without_a_mark_days_that_are_missing_are_loaded_now_and_then(
    bench: Bench, root: Path
) -> None:
    put(root, "costs", DAY, parquet("costs", [row("costs")]))
    async with bench.master(upkeep=UpkeepTimes(marks=0.2, first=0.5)):
        await loaded(bench)


async def test_loading_that_fails_is_told_and_tried_again_later(bench: Bench, root: Path) -> None:
    place = mark(root, put(root, "costs", DAY, parquet("costs", [row("costs")])))
    content = place.read_bytes()
    place.unlink()
    place.mkdir()  # it can be neither read nor removed
    with capture_logs() as logs:
        async with bench.master(upkeep=UpkeepTimes(marks=0.2, rollups_after_failure=1.0)):
            await eventually(lambda: any("roll-ups were not loaded" in str(one) for one in logs))
            assert place.exists()
            place.rmdir()
            place.write_bytes(content)
            await loaded(bench)
    assert len(await days(bench)) == 1
