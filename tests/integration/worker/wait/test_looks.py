"""Looks at real places: folders, an HTTP server, an S3 that moto plays, SQLite and PostgreSQL."""

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.core.data_sources import DataSource
from tests.integration.drivers.conftest import postgresql as postgresql
from tests.integration.drivers.servers import Served
from tests.integration.worker.http.conftest import server as server
from tests.integration.worker.http.kit import LOOPBACK
from tests.integration.worker.wait.kit import Looked, look, look_at_rows
from tests.support.servers.http_server import HttpServer, answer, says

NOT_YET, PERMANENT = 75, 65
S3_ENV = {
    "AWS_ACCESS_KEY_ID": "a",
    "AWS_SECRET_ACCESS_KEY": "b",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "attempt"


# -- files --------------------------------------------------------------------------------------


def test_file_is_found_when_it_is_there(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "in.csv"
    first = look(folder, {"path": str(place), "every": "30s"})
    assert (first.code, first.again_s) == (NOT_YET, 30)
    assert first.reason == f"{place}: nothing is there"
    assert first.outputs == {}
    place.write_text("abc")
    found = look(folder, {"path": str(place)})
    assert found.code == 0
    assert found.outputs["file"] == str(place)
    assert (found.outputs["size"], found.outputs["count"]) == (3, 1)


def test_pattern_counts_files_in_folders_below(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    params = {"path": f"{data}/**/*.csv", "at_least": 2, "min_size": 1}
    assert look(folder, params).code == NOT_YET
    (data / "a" / "b").mkdir(parents=True)
    (data / "one.csv").write_text("x")
    (data / "a" / "empty.csv").touch()
    short = look(folder, params)
    assert short.code == NOT_YET
    assert short.reason.startswith("1 of 2 are there; ")
    (data / "a" / "b" / "two.csv").write_text("y")
    assert look(folder, params).outputs["count"] == 2


def test_next_look_comes_when_the_file_will_have_rested(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.touch()
    os.utime(place, (time.time() - 50, time.time() - 50))
    looked = look(folder, {"path": str(place), "stable_for": "1m", "every": "10m"})
    assert looked.code == NOT_YET
    assert looked.again_s is not None
    assert 1 <= looked.again_s <= 10


def test_intervals_grow_with_the_looks(folder: Path, tmp_path: Path) -> None:
    params = {"path": str(tmp_path / "x"), "every": "10s", "back_off": 2, "every_max": "1m"}
    assert look(folder, params, looks=2).again_s == 40
    assert look(folder, params, looks=20).again_s == 60


def test_time_is_read_in_the_zone_of_the_run(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "x"
    place.touch()
    os.utime(place, (1_772_000_000, 1_772_000_000))  # 2026-02-25T06:13:20Z
    params = {"path": str(place), "newer_than": "2026-02-25T07:00"}
    berlin, utc = {"SHOAL_TIMEZONE": "Europe/Berlin"}, {"SHOAL_TIMEZONE": "UTC"}
    assert look(folder, params, env=berlin).code == 0
    assert look(folder, params, env=utc).code == NOT_YET


def test_folders_of_the_worker_are_kept(folder: Path, tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "x").touch()
    (inside / "link").symlink_to(outside / "x")
    settings = {"wait_roots": str(inside)}
    refused = look(folder, {"path": f"{outside}/*"}, settings=settings)
    assert refused.code == PERMANENT
    assert "wait_roots" in refused.reason
    assert look(folder, {"path": f"{inside}/*"}, settings=settings).code == NOT_YET
    assert look(folder, {"path": f"{inside}/link"}, settings=settings).code == PERMANENT
    (inside / "y").touch()
    assert look(folder, {"path": f"{inside}/*"}, settings=settings).outputs["count"] == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look everywhere")
def test_folder_that_may_not_be_read_fails_for_good(folder: Path, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    try:
        assert look(folder, {"path": f"{closed}/x"}).code == PERMANENT
        refused = look(folder, {"path": f"{closed}/*"})
    finally:
        closed.chmod(0o700)
    assert refused.code == PERMANENT
    assert "may not look at" in refused.reason


def test_placeholder_that_nothing_fills_fails_for_good(folder: Path) -> None:
    looked = look(folder, {"path": "/${nowhere}/x"})
    assert looked.code == PERMANENT
    assert "placeholder" in looked.reason


# -- URLs ---------------------------------------------------------------------------------------


async def head(folder: Path, url: str, **params: object) -> Looked:
    return await asyncio.to_thread(look, folder, {"url": url, **params}, settings=LOOPBACK)


async def test_http_url_is_asked_with_head(server: HttpServer, folder: Path) -> None:
    there = answer(200, Content_Length="12345", Last_Modified="Wed, 25 Feb 2026 06:13:20 GMT")
    server.handlers["/x"] = says(answer(404), answer(503), there)
    url = f"{server.url}/x"
    missing = await head(folder, url)
    assert (missing.code, missing.reason) == (NOT_YET, f"{url}: nothing is there")
    trouble = await head(folder, url)
    assert (trouble.code, trouble.reason) == (NOT_YET, f"{url}: the status is 503")
    found = await head(folder, url, min_size=1000)
    assert found.code == 0
    assert (found.outputs["size"], found.outputs["mtime"]) == (12345, "2026-02-25T06:13:20+00:00")
    assert [one.method for one in server.received] == ["HEAD"] * 3


@pytest.mark.parametrize(("status", "says_why"), [(403, "status is 403"), (405, "has no HEAD")])
async def test_http_answer_that_will_not_change_fails_for_good(
    server: HttpServer, folder: Path, status: int, says_why: str
) -> None:
    server.handlers["/x"] = says(answer(status))
    looked = await head(folder, f"{server.url}/x")
    assert looked.code == PERMANENT
    assert says_why in looked.reason


async def test_own_machine_is_not_reached_unless_allowed(server: HttpServer, folder: Path) -> None:
    params = {"url": f"{server.url}/x"}
    looked = await asyncio.to_thread(look, folder, params)
    assert looked.code == PERMANENT
    assert "http_allow" in looked.reason
    assert server.received == []


def test_storage_that_is_not_allowed_is_not_asked(folder: Path) -> None:
    settings = {"wait_roots": "s3://lake/other"}
    refused = look(folder, {"url": "webhdfs://127.0.0.1:9/day"}, settings=settings)
    assert refused.code == PERMANENT
    assert "wait_roots" in refused.reason


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """The address of an S3 with the bucket ``lake``."""
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    address = f"http://{host}:{port}"
    try:
        client = boto3.client(
            "s3",
            endpoint_url=address,
            aws_access_key_id="a",
            aws_secret_access_key="b",
            region_name="us-east-1",
        )
        client.create_bucket(Bucket="lake")
        for name in ("day=1/a.parquet", "day=1/b.parquet"):
            client.put_object(Bucket="lake", Key=name, Body=b"1234")
        yield address
    finally:
        moto.stop()


def test_objects_of_an_s3_that_moto_plays(s3: str, folder: Path) -> None:
    env = {**S3_ENV, "AWS_ENDPOINT_URL": s3}
    told: dict[str, Any] = {"env": env, "settings": {"wait_roots": "s3://lake"}}
    params = {"url": "s3://lake/day=1/*.parquet", "at_least": 2, "stable_for": "0s"}
    found = look(folder, params, **told)
    assert found.code == 0
    assert found.outputs["files"] == ["s3://lake/day=1/a.parquet", "s3://lake/day=1/b.parquet"]
    assert found.outputs["size"] == 8
    assert "mtime" in found.outputs
    one = look(folder, {"url": "s3://lake/day=1/a.parquet"}, **told)
    assert (one.code, one.outputs["count"]) == (0, 1)
    missing = look(folder, {"url": "s3://lake/day=2/a.parquet"}, **told)
    assert missing.code == NOT_YET


# -- rows ---------------------------------------------------------------------------------------


@pytest.fixture
def db(tmp_path: Path) -> DataSource:
    file = tmp_path / "data.db"
    with sqlite3.connect(file) as connection:
        connection.execute("create table t (a integer, b text)")
    connection.close()
    return DataSource("db", "sqlite", database=str(file))


def insert(db: DataSource, *rows: tuple[int, str]) -> None:
    with sqlite3.connect(db.database) as connection:
        connection.executemany("insert into t values (?, ?)", rows)
    connection.close()


def test_query_is_asked_until_it_has_a_row_that_counts(db: DataSource, folder: Path) -> None:
    params = {"sql": "select a, b from t where b = '${wanted}'", "every": "20s"}
    given = {"wanted": "it's"}
    looked = look_at_rows(folder, db, params, parameters=given)
    assert (looked.code, looked.reason) == (NOT_YET, "the query returns no row")
    assert (looked.again_s, looked.settled) == (20, True)
    insert(db, (0, "it's"))
    looked = look_at_rows(folder, db, params, parameters=given)
    assert (looked.code, looked.reason) == (NOT_YET, "the value is '0'")
    insert(db, (7, "it's"))
    params["sql"] += " order by a desc"
    looked = look_at_rows(folder, db, params, parameters=given)
    assert (looked.code, looked.outputs) == (0, {"value": "7"})


def test_expression_over_the_first_row_decides(db: DataSource, folder: Path) -> None:
    params = {"sql": "select count(*) as n from t", "until": "number(n) >= number(wanted)"}
    given = {"wanted": "2"}
    insert(db, (1, "x"))
    looked = look_at_rows(folder, db, params, parameters=given)
    assert looked.code == NOT_YET
    assert looked.reason == "`until` is not true: number(n) >= number(wanted) (n = 1, wanted = 2)"
    insert(db, (2, "y"))
    assert look_at_rows(folder, db, params, parameters=given).outputs == {"value": "2"}


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("select nonsense from t", "no such column"),
        ("insert into t values (1, 'x')", "read"),
        ("select 1; select 2", "one query is expected"),
        ("select '${nowhere}'", "nowhere"),
    ],
)
def test_query_that_will_never_do_fails_for_good(
    db: DataSource, folder: Path, sql: str, problem: str
) -> None:
    looked = look_at_rows(folder, db, {"sql": sql})
    assert looked.code == PERMANENT
    assert problem in looked.reason
    with sqlite3.connect(db.database) as connection:
        assert connection.execute("select count(*) from t").fetchone() == (0,)
    connection.close()


def test_database_that_cannot_be_reached_is_asked_again(folder: Path) -> None:
    gone = DataSource("gone", "postgresql", host="127.0.0.1", port=9, user="u")
    looked = look_at_rows(folder, gone, {"sql": "select 1"})
    assert looked.code == NOT_YET
    assert looked.settled
    assert "127.0.0.1" in looked.reason


def test_postgresql_is_only_read(postgresql: Served, folder: Path) -> None:
    source = postgresql.source
    looked = look_at_rows(folder, source, {"sql": "select null::int"})
    assert (looked.code, looked.reason) == (NOT_YET, "the value is NULL")
    assert look_at_rows(folder, source, {"sql": "select true"}).outputs == {"value": "true"}
    looked = look_at_rows(folder, source, {"sql": "create table wait_sql_wrote (a int)"})
    assert looked.code == PERMANENT
    assert "read-only" in looked.reason
    slow = {"sql": "select pg_sleep(60)", "statement_timeout": "200ms"}
    looked = look_at_rows(folder, source, slow)
    assert (looked.code, looked.settled) == (NOT_YET, True)
    assert "did not end" in looked.reason
