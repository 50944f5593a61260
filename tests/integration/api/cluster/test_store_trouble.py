"""Health of a cluster whose database answers queries and stores nothing."""

import asyncio
import time
from pathlib import Path

import psycopg
import pytest

from shoal.runtime.settings import ClusterSettings
from tests.integration.api.conftest import PREFIX, Api
from tests.support.waiting import DEADLINE_S


async def _until(api: Api, *, ok: bool, says: str = "") -> str:
    """Return what /health says of the database as soon as it is (not) well; as probes see it."""
    until_s = time.monotonic() + DEADLINE_S
    while True:
        ready = await api.client.get(f"{PREFIX}/health/ready")
        check = ready.json()["checks"]["database"]
        if (check["ok"] is ok and says in check["detail"]) or time.monotonic() > until_s:
            assert check["ok"] is ok, check
            assert says in check["detail"]
            assert ready.status_code == (200 if ok else 503)
            return str(check["detail"])
        await asyncio.sleep(0.2)


class TestReadOnly:
    """A PostgreSQL that is read-only, as during a switchover."""

    @pytest.fixture
    def cluster(self, cluster: ClusterSettings, postgresql_url: str) -> ClusterSettings:
        return cluster.model_copy(update={"database_url": postgresql_url})

    async def test_read_only_server_is_seen_named_and_used_again_by_itself(
        self, api: Api, postgresql_url: str
    ) -> None:
        await api.publish()
        assert await _until(api, ok=True) == "postgresql answers and stores"
        with psycopg.connect(postgresql_url, autocommit=True) as admin:
            name = admin.info.dbname

            def switch(setting: str) -> None:
                admin.execute(f"ALTER DATABASE {name} {setting}".encode())
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )

            switch("SET default_transaction_read_only = on")
            said = await _until(api, ok=False, says="read-only")
            assert "names the primary" in said
            start = {"type": "START", "project": "p", "workflow": "daily"}
            refused = await api.client.post(f"{PREFIX}/commands", json=start)
            assert refused.status_code == 503
            assert refused.json()["type"].endswith("database-unwritable")
            # The sessions of this time stay: only their end makes them writable.
            admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
        await _until(api, ok=True)
        await api.run()


async def test_moved_file_is_seen_and_no_start_is_accepted(
    api: Api, cluster: ClusterSettings
) -> None:
    await api.publish()
    await _until(api, ok=True)
    file = Path(cluster.database.removeprefix("sqlite:///"))
    moved = _rename(file, "moved.db")
    said = await _until(api, ok=False)
    assert f"the database file {file} was moved" in said
    start = {"type": "START", "project": "p", "workflow": "daily"}
    refused = await api.client.post(f"{PREFIX}/commands", json=start)
    assert refused.status_code == 503
    _rename(moved, file.name)
    await _until(api, ok=True)
    await api.run()


def _rename(file: Path, name: str) -> Path:
    return file.rename(file.with_name(name))
