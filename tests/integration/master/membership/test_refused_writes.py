"""A master whose database answers and stores nothing says so, until it stores again."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shoal.master.membership.database_health import DatabaseHealth
from shoal.sql import Database
from shoal.sql.errors import DatabaseMoved
from tests.support.waiting import DEADLINE_S

TIMEOUT_S = 0.4


async def test_a_refused_write_is_said_until_the_database_stores_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.sql.write_check.RETRY_S", 0.05)
    monkeypatch.setattr("shoal.sql.write_check.REMEMBERED_S", 0.2)
    file = tmp_path / "shoal.db"
    async with Database(f"sqlite:///{file}") as database:
        await database.migrate()
        health = DatabaseHealth(database, TIMEOUT_S, lambda: datetime.now(UTC))
        running = asyncio.create_task(health.run())
        assert "refuses" not in health.state.as_data()
        moved = _rename(file, "moved.db")
        with pytest.raises(DatabaseMoved):
            async with database.unit_of_work():
                pass
        assert "was moved" in health.state.as_data()["refuses"]
        await asyncio.sleep(2 * TIMEOUT_S)
        assert "refuses" in health.state.as_data()
        assert health.state.answers  # so it gives nothing up
        _rename(moved, "shoal.db")
        async with asyncio.timeout(DEADLINE_S):
            while "refuses" in health.state.as_data():
                await asyncio.sleep(0.02)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def _rename(file: Path, name: str) -> Path:
    return file.rename(file.with_name(name))
