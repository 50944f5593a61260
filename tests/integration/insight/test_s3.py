"""A history at an S3, played by moto, and results that go there and come from there."""

from datetime import date, timedelta
from io import BytesIO
from pathlib import Path

import boto3
import pyarrow.parquet as pq
import pytest

from shoal.insight.history.store import HistoryStore
from shoal.insight.serving.loader import Loader
from shoal.insight.serving.store import ResultStore
from shoal.sql import Database
from tests.integration.insight.expected import Expected
from tests.integration.insight.histories import CLUSTER, FIRST, Generator, History
from tests.integration.insight.made import mark, parquet, put, row
from tests.integration.insight.program import ended, started
from tests.integration.insight.results import assert_same
from tests.support.storage import s3, sign_in

__all__ = ["s3"]


def upload(folder: Path, prefix: str, s3: str) -> None:
    """Copy all files of a folder to the bucket."""
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    for file in folder.rglob("*.*"):
        if file.is_file():
            client.upload_file(str(file), "shoal", f"{prefix}/{file.relative_to(folder)}")


def test_history_and_results_can_be_at_an_s3(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(monkeypatch, s3)
    history = tmp_path / CLUSTER
    Generator(History(history), 9, runs=30).write()
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    upload(history, CLUSTER, s3)
    process = started(f"s3://shoal/{CLUSTER}", "s3://shoal/out", "--only", "task_days")
    code, _, err = ended(process)
    assert code == 0, err
    found = []
    for day in (FIRST + timedelta(days=number) for number in range(7)):
        key = f"out/task_days/day={day}/rows.parquet"
        body = client.get_object(Bucket="shoal", Key=key)["Body"].read()
        found += [{"day": day, **row} for row in pq.ParquetFile(BytesIO(body)).read().to_pylist()]
    assert_same(found, Expected(history, FIRST, FIRST + timedelta(days=6)).task_days())


async def test_results_are_loaded_from_an_s3_and_old_ones_go(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(monkeypatch, s3)
    day = date.today() - timedelta(days=1)
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    results = [
        put(tmp_path, "costs", one, parquet("costs", [row("costs")]))
        for one in (day, day - timedelta(days=50))
    ]
    mark(tmp_path, *results)
    upload(tmp_path, f"{CLUSTER}/rollups", s3)
    store = ResultStore(HistoryStore.at(f"s3://shoal/{CLUSTER}"))
    async with Database(f"sqlite:///{tmp_path}/shoal.db") as database:
        await database.migrate()
        done = await Loader(database, store, keep_days=30).run()
        async with database.unit_of_work(read_only=True) as uow:
            found = await uow.rollups.days()
    assert (done.loaded, done.refused) == (1, [])
    assert [(one.job, one.day, one.digest) for one in found] == [("costs", day, results[0].sha256)]
    left = client.list_objects_v2(Bucket="shoal", Prefix=f"{CLUSTER}/rollups")["Contents"]
    assert [one["Key"] for one in left] == [f"{CLUSTER}/rollups/costs/day={day}/rows.parquet"]
