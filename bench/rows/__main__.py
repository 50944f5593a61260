"""Write millions of rows into files by SQL tasks; print time and peak memory of their processes.

The rows are made by the database itself, with a whole number, a text, a decimal and a time each.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from shoal.core.data_sources import DataSource
from shoal.worker.types.child.kind import argv
from shoal.worker.types.child.request import WorkRequest
from shoal.worker.types.sql.sql import Sql, SqlParams
from tests.integration.drivers.servers import postgresql_served

QUERIES = {
    "sqlite": """
        with recursive r(i) as (select 1 union all select i + 1 from r where i < {count})
        select i, 'row number ' || i as s, i / 4.0 as d, datetime(i, 'unixepoch') as at from r""",
    "duckdb": """
        select i, 'row number ' || i as s, (i / 4.0)::decimal(12, 2) as d,
        timestamp '2026-01-01' + to_seconds(i) as at from range(1, {count} + 1) r(i)""",
    "postgresql": """
        select i, 'row number ' || i as s, (i / 4.0)::numeric(12, 2) as d,
        timestamp '2026-01-01' + i * interval '1 s' as at from generate_series(1, {count}) r(i)""",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rows", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--kind", action="append", choices=list(QUERIES))
    parser.add_argument("--format", action="append", choices=["csv", "parquet"])
    given = parser.parse_args()
    kinds = given.kind or list(QUERIES)
    sys.stdout.write(f"| {given.rows:,} rows | seconds | CPU seconds | peak MiB | file MiB |\n")
    sys.stdout.write("| --- | --: | --: | --: | --: |\n")
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder, _source(kind, Path(folder)) as source:
            for ending in given.format or ["csv", "parquet"]:
                sys.stdout.write(_measure(source, given.rows, ending, Path(folder)))
                sys.stdout.flush()


@contextmanager
def _source(kind: str, folder: Path) -> Iterator[DataSource]:
    if kind != "postgresql":
        yield DataSource("db", kind, database=str(folder / "data"))
        return
    with postgresql_served() as served:
        yield replace(served.source, name="db")


def _measure(source: DataSource, count: int, ending: str, folder: Path) -> str:
    name = f"rows.{ending}"
    query = QUERIES[source.kind].format(count=count)
    params = SqlParams.model_validate(
        {"data_source": "db", "sql": query, "result": "file", "file_name": name}
    )
    request = WorkRequest(
        work=Sql.work,
        task_type=f"{Sql.__module__}:{Sql.__qualname__}",
        params=params.model_dump(mode="json"),
        parameters={},
        task_instance_id=1,
        attempt=1,
        tag="shoal-bench",
        data_sources={"db": source},
    )
    began = time.monotonic()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            argv(), stdin=subprocess.PIPE, stdout=log, stderr=log, cwd=folder
        )
    assert process.stdin is not None
    process.stdin.write(request.to_json().encode())
    process.stdin.close()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit((folder / "log").read_text())
    process.returncode = 0
    file = folder / name
    size = file.stat().st_size / 2**20
    file.unlink()
    return (
        f"| {source.kind}, {ending} | {time.monotonic() - began:.0f} "
        f"| {used.ru_utime + used.ru_stime:.0f} | {used.ru_maxrss / 1024:.0f} | {size:.0f} |\n"
    )


if __name__ == "__main__":
    main()
