"""What the same small query costs: as a SPARK task, which starts a JVM, and on Spark Connect.

A SPARK task is run without the worker's archive of Spark's classes, and with it. Each is measured
from the start of the attempt's process to its end, by the clock and in processor time, its children
included; on Connect the server's processor time as well. The first query of a server is dearer and
stands by itself.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.core.data_sources import DataSource
from shoal.worker.processes.launcher import Launcher
from shoal.worker.processes.work_files import make_folder
from shoal.worker.spark.class_archiver import ClassArchiver
from shoal.worker.types.child.kind import ChildType, argv
from shoal.worker.types.child.request import WorkRequest
from shoal.worker.types.spark.class_archive import SETTING as CLASS_ARCHIVES
from shoal.worker.types.spark.kind import Spark
from shoal.worker.types.sql.sql import Sql
from tests.support.spark.connect import Served, served

QUERY = "SELECT count(*), sum(id) FROM range(1000000)"
SCRIPT = f"""
from pyspark.sql import SparkSession
print(SparkSession.builder.getOrCreate().sql({QUERY!r}).collect())
"""


@dataclass(frozen=True)
class Cost:
    """Seconds by the clock, and of processors."""

    wall_s: float
    cpu_s: float


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        submitted = [_submit(root / f"submit-{number}") for number in range(given.runs)]
        archives = root / "archives"
        archives.mkdir()
        _submit(root / "misses-it", archives)
        making = asyncio.run(_made(archives, root))
        faster = [_submit(root / f"archive-{number}", archives) for number in range(given.runs)]
        folder = root / "server"
        folder.mkdir()
        sizes = [file.stat().st_size >> 20 for file in archives.iterdir()]
        with served(folder) as server:
            first = _ask(server, root / "first", 1)
            asked = [_ask(server, root / f"ask-{n}", 2 + 2 * n) for n in range(given.runs)]
    sys.stdout.write("| | seconds | processor seconds | of spark-submit |\n")
    sys.stdout.write("| --- | ---: | ---: | --- |\n")
    base = _middle(submitted)
    _print("SPARK, spark-submit", base, base)
    _print("SPARK, with the archive of classes", _middle(faster), base)
    _print("SQL on Spark Connect, the server's first query", first, base)
    _print("SQL on Spark Connect, from the second on", _middle(asked), base)
    [archive] = sizes
    sys.stdout.write(f"\nThe archive: {archive} MB, made in {making:.0f} s.\n")


def _print(name: str, cost: Cost, base: Cost) -> None:
    ratio = f"1 / {base.wall_s / cost.wall_s:.1f}, processors 1 / {base.cpu_s / cost.cpu_s:.1f}"
    line = f"| {name} | {cost.wall_s:.2f} | {cost.cpu_s:.2f} | {ratio} |\n"
    sys.stdout.write(line)


def _middle(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(one.wall_s for one in costs),
        statistics.median(one.cpu_s for one in costs),
    )


def _submit(folder: Path, archives: Path | None = None) -> Cost:
    settings = {CLASS_ARCHIVES: str(archives)} if archives else {}
    params = {"script": SCRIPT, "master": "local[2]"}
    return _measured(Spark, params, folder, {}, 1, settings)


async def _made(archives: Path, root: Path) -> float:
    """Make the archive as a worker does; return how many seconds that took."""
    work = root / "work"
    work.mkdir()
    async with Launcher() as launcher:
        began = time.monotonic()
        await ClassArchiver(archives, work, launcher, os.environ).make_wanted()
        return time.monotonic() - began


def _ask(server: Served, folder: Path, attempt: int) -> Cost:
    params = {"data_source": "lake", "sql": QUERY}
    before = _processor_s(server.process.pid)
    own = _measured(Sql, params, folder, {"lake": server.source}, attempt)
    return Cost(own.wall_s, own.cpu_s + _processor_s(server.process.pid) - before)


def _measured(
    kind: type[ChildType[Any]],
    params: dict[str, Any],
    folder: Path,
    sources: dict[str, DataSource],
    attempt: int,
    settings: Mapping[str, str] | None = None,
) -> Cost:
    """Run an attempt's process to its good end."""
    make_folder(folder)
    request = WorkRequest(
        work=kind.work,
        task_type=f"{kind.__module__}:{kind.__qualname__}",
        params=kind.Params.model_validate(params).model_dump(mode="json"),
        parameters={},
        task_instance_id=1,
        attempt=attempt,
        tag="shoal-bench",
        data_sources=sources,
        settings=settings or {},
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
    process.returncode = 0
    if status:
        raise SystemExit((folder / "log").read_text())
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime)


def _processor_s(pid: int) -> float:
    """Return the processor time of a process; see proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
