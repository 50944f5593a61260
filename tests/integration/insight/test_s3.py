"""A history at an S3, played by moto, and results that go there."""

from datetime import timedelta
from io import BytesIO
from pathlib import Path

import boto3
import pyarrow.parquet as pq
import pytest

from tests.integration.insight.expected import Expected
from tests.integration.insight.histories import CLUSTER, FIRST, Generator, History
from tests.integration.insight.results import assert_same
from tests.integration.insight.test_program import ended, started
from tests.unit.runtime.test_storage import s3, sign_in

__all__ = ["s3"]


def test_history_and_results_can_be_at_an_s3(
    s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(monkeypatch, s3)
    history = tmp_path / CLUSTER
    Generator(History(history), 9, runs=30).write()
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    for file in history.rglob("*.*"):
        if file.is_file():
            key = f"{CLUSTER}/{file.relative_to(history)}"
            client.upload_file(str(file), "shoal", key)
    process = started(f"s3://shoal/{CLUSTER}", "s3://shoal/out", "--only", "task_days")
    code, _, err = ended(process)
    assert code == 0, err
    found = []
    for day in (FIRST + timedelta(days=number) for number in range(7)):
        key = f"out/task_days/day={day}/rows.parquet"
        body = client.get_object(Bucket="shoal", Key=key)["Body"].read()
        found += [{"day": day, **row} for row in pq.ParquetFile(BytesIO(body)).read().to_pylist()]
    assert_same(found, Expected(history, FIRST, FIRST + timedelta(days=6)).task_days())
