"""Masters export what has ended, in a process of its own, and go on when that fails."""

import asyncio
import os
from pathlib import Path
from typing import cast

import pytest

from shoal.core.runs.states import WorkflowState
from shoal.insight.history.store import HistoryStore
from shoal.master.engine.engine import Engine
from shoal.master.services.service import UpkeepFailed
from shoal.master.services.upkeep import history
from shoal.master.settings import UpkeepTimes
from shoal.sql import Database
from shoal.sql.errors import DatabaseUnavailable
from tests.integration.master.conftest import Bench
from tests.integration.master.contexts import context_of
from tests.support.waiting import DEADLINE_S, eventually


async def test_what_has_ended_is_exported_also_after_the_storage_was_away(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_DATABASE_URL", bench.cluster.database)  # the process reads it, too
    place = tmp_path / "history"
    place.write_text("")  # no folder: nothing can be exported
    bench.cluster = bench.cluster.model_copy(update={"history_url": str(place)})
    async with bench.database.unit_of_work() as uow:
        store = HistoryStore(str(place), await uow.cluster.uid())
        await uow.commit()
    workflow = await bench.publish({"a": {}})
    async with bench.master(export_interval_s=0.5), (await bench.worker("w")).working():
        instance = await bench.start(workflow)
        assert await bench.ended(instance.id) is WorkflowState.SUCCEEDED
        async with asyncio.timeout(DEADLINE_S):
            while not await _trouble(bench):
                await asyncio.sleep(0.05)
        async with bench.database.unit_of_work(read_only=True) as uow:
            told = await uow.verified_history.get()
        # The purge waits, and people ask why.
        assert f"in the storage of the exported history, {place}" in str(told.trouble)
        assert told.trouble_since is not None
        place.unlink()
        await eventually(lambda: len(store.contents().of("instances")) == 1)
        async with asyncio.timeout(DEADLINE_S):
            while not await _is_well(bench):
                await asyncio.sleep(0.05)
    assert [file.rows for file in store.contents().of("attempts")] == [1]


async def _is_well(bench: Bench) -> bool:
    async with bench.database.unit_of_work(read_only=True) as uow:
        found = await uow.verified_history.get()
    return found.trouble is None and found.verified_at is not None


async def test_a_master_that_leaves_takes_its_export_along(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_DATABASE_URL", bench.cluster.database)
    monkeypatch.setenv("SHOAL_FAILPOINTS", "export.before_commit=pause:1000")
    place = tmp_path / "history"
    bench.cluster = bench.cluster.model_copy(update={"history_url": str(place)})
    async with bench.master(export_interval_s=0.5):
        await eventually(lambda: _exports(place))
        assert _exports(place)
    assert not _exports(place)


async def test_an_export_that_does_not_end_is_stopped_and_told(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_DATABASE_URL", bench.cluster.database)
    monkeypatch.setenv("SHOAL_FAILPOINTS", "export.before_commit=pause:1000")
    place = tmp_path / "history"
    bench.cluster = bench.cluster.model_copy(update={"history_url": str(place)})
    async with bench.master(upkeep=UpkeepTimes(longest_program=4.0), export_interval_s=0.5):
        await eventually(lambda: _exports(place))
        async with asyncio.timeout(DEADLINE_S):
            while not (why := await _trouble(bench)):
                await asyncio.sleep(0.05)
    assert "it has not ended in" in why
    assert str(place) in why


async def test_export_that_failed_says_so_although_the_database_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After any other error the export would be repeated at once, during the whole outage."""

    class Away:
        def unit_of_work(self) -> None:
            raise DatabaseUnavailable("the database is away")

    class Owner:
        def owns(self, partition: int) -> bool:
            return True

    async def fail(*_: object) -> None:
        raise UpkeepFailed("no connection")

    monkeypatch.setattr(history, "run_insight", fail)
    context = context_of(cast("Database", Away()), cast("Engine", Owner()))
    export = history.HistoryExport(context, str(tmp_path), tmp_path)
    with pytest.raises(history.ExportFailed, match="no connection"):
        await export.export()


async def test_answer_of_a_program_that_is_cut_off_or_not_json_is_a_failure() -> None:
    with pytest.raises(UpkeepFailed, match=r"the answer of this is not JSON .*'The Zen"):
        await history.run_insight("this", [], 60.0)  # Python's module that prints a poem


async def _trouble(bench: Bench) -> str | None:
    async with bench.database.unit_of_work(read_only=True) as uow:
        return (await uow.verified_history.get()).trouble


def _exports(place: Path) -> list[str]:
    """Return the processes that export to a folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if os.fsencode(str(place)) in arguments:
            found.append(folder.name)
    return found
