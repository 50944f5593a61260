"""Retention of archived logs: those of purged instances go, and no others."""

import asyncio
import io
import os
import time
from pathlib import Path

import pytest
from sqlalchemy import text

from shoal.master.settings import UpkeepTimes
from shoal.runtime.log_archive import LogArchive
from shoal.sql import UnitOfWork
from tests.integration.master.conftest import Bench
from tests.support.waiting import DEADLINE_S, eventually


async def test_logs_of_instances_that_there_are_not_any_more_go(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thousands, polls = LogArchive.thousands, list[str]()

    def counted(self: LogArchive) -> list[int]:
        polls.append("poll")
        return thousands(self)

    monkeypatch.setattr(LogArchive, "thousands", counted)
    place = tmp_path / "archive"
    bench.cluster = bench.cluster.model_copy(update={"logs_url": str(place)})
    async with bench.database.unit_of_work() as uow:
        archive = LogArchive(str(place), await uow.cluster.uid())
        await uow.commit()
    other = LogArchive(str(place), "of another cluster")
    workflow = await bench.publish({"a": {}})
    async with bench.database.unit_of_work() as uow:  # it has had many instances
        await have_had(uow, 2_000_000)
        await uow.commit()
    async with bench.master(upkeep=UpkeepTimes(archived_logs=0.5)):
        instance = await bench.start(workflow)
        for number in (instance.id, 1_234_567, 3_000_000):
            archive.put(number, 1, io.BytesIO(b"log"))
            other.put(number, 1, io.BytesIO(b"log"))
        await eventually(lambda: archive.instances(1234) == [])
        place.rename(tmp_path / "away")
        place.write_text("")  # the storage is away: the next poll repeats it
        refused = len(polls)
        await eventually(lambda: len(polls) > refused + 1)
        place.unlink()
        (tmp_path / "away").rename(place)
        archive.put(999_999, 1, io.BytesIO(b"log"))
        async with asyncio.timeout(DEADLINE_S):
            while archive.instances(999):
                await asyncio.sleep(0.05)
    assert archive.instances(instance.id // 1000) == [instance.id]
    assert archive.read(instance.id, 1, 0, 3) == b"log"
    assert other.instances(1234) == [1_234_567]
    assert archive.instances(3000) == [3_000_000], "of a database that is ahead of this one"


async def test_logs_may_outlive_their_runs(bench: Bench, tmp_path: Path) -> None:
    place = tmp_path / "archive"
    bench.cluster = bench.cluster.model_copy(update={"logs_url": str(place)})
    async with bench.database.unit_of_work() as uow:
        archive = LogArchive(str(place), await uow.cluster.uid())
        await uow.commit()
    async with bench.database.unit_of_work() as uow:
        await have_had(uow, 8)
        await uow.commit()
    for number in (7, 8):  # the database knows neither any longer
        archive.put(number, 1, io.BytesIO(b"old"))
        archive.put(number, 2, io.BytesIO(b"new"))
    _age(place, "7/1.log", 50)
    for name in ("8/1.log", "8/2.log"):
        _age(place, name, 31)
    async with bench.master(upkeep=UpkeepTimes(kept_logs=0.5), keep_archived_logs_days=30.0):
        await eventually(lambda: archive.instances(0) == [7])
    assert archive.read(7, 1, 0, 3) == b"old", "an instance goes as a whole"


async def have_had(uow: UnitOfWork, last: int) -> None:
    """Let the database have had instances up to this id."""
    query = f"SELECT setval(pg_get_serial_sequence('workflow_instance', 'id'), {last})"
    if uow.connection.dialect == "sqlite":
        query = f"INSERT INTO sqlite_sequence VALUES ('workflow_instance', {last})"
    await uow.connection.execute(text(query))


def _age(place: Path, name: str, days: float) -> None:
    [file] = place.glob(f"*/0/{name}")
    at = time.time() - days * 86_400
    os.utime(file, (at, at))
