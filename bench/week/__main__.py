"""Run short workflows on a real cluster whose retention is seconds, and watch what it occupies.

Most runs have one task that masters do themselves (a SWITCH), some have a process on a worker: so
there are hundreds of thousands of runs in minutes, and everything that grows with real ones grows.
The first part, until as much goes as comes, does not count.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

from sqlalchemy import create_engine, text

from bench.support.cluster import Running, Size, running
from bench.support.machine import DATABASES, RESULTS, machine
from bench.support.quiet import log_warnings_to_stderr
from bench.support.rest import Rest
from bench.week.samples import (
    DISK,
    HOURLY,
    MEMORY,
    MIB,
    ROWS,
    Sample,
    markdown,
    memory,
    size_of,
    trends,
)
from shoal.sql.engine import read_url
from tests.support.database.postgresql import DURABLE

KEEP_S = 20.0  # what stands for ninety days
SAMPLE_S = 5.0
TABLES = ("command", "workflow_instance", "task_instance", "event")
KEPT = frozenset(f"{ROWS}: {table}" for table in TABLES)
# Dead rows are looked for once a minute; of a week squeezed like this, that would be a whole day.
# And its cache fills up to its bound before the watching begins.
POSTGRESQL = (
    *DURABLE,
    "autovacuum_naptime=5s",
    "autovacuum_vacuum_cost_delay=0",
    "shared_buffers=16MB",
)
# A connection's server process keeps the plans of 100 statements at most beside those that modules
# hold (driver/postgresql/pipeline.py), each some 45 KiB, which come to their sixth execution, and
# so to a plan, over many minutes.
CONNECTION_BYTES = 8.0 * MIB
CONNECTIONS = f"{ROWS}: connections"
SWITCHED = "week-switched"
RUN = "week-run"
_DAY_S = 86_400.0
_SETTINGS = {
    # The purge would wait for the export, and the history is meant to grow.
    "SHOAL_HISTORY_URL": "",
    "SHOAL_MASTER_KEEP_INSTANCES_DAYS": KEEP_S / _DAY_S,
    "SHOAL_MASTER_KEEP_EVENTS_DAYS": KEEP_S / 2 / _DAY_S,
    "SHOAL_MASTER_KEEP_COMMANDS_DAYS": KEEP_S / 2 / _DAY_S,
    "SHOAL_MASTER_KEEP_BACKFILLS_DAYS": KEEP_S / _DAY_S,
    "SHOAL_MASTER_PURGE_INTERVAL_S": 2.0,
    # A week's purging has the whole night; here it has to keep up with thousands of runs a minute.
    "SHOAL_MASTER_PURGE_SHARE": 0.5,
    "SHOAL_WORKER_LOG_RETENTION_DAYS": KEEP_S / _DAY_S,
    "SHOAL_LOG_LEVEL": "warning",
}


def options_of(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.week", description=__doc__)
    add = parser.add_argument
    add("--database", choices=DATABASES, action="append", help="default: both")
    add("--minutes", type=float, default=10.0, help="how long, for each database")
    add("--masters", type=int, default=2)
    add("--workers", type=int, default=1)
    add("--connections", type=int, default=4, help="who ask for runs, each by one request a run")
    add("--real", type=int, default=10, metavar="N", help="every N-th run has a process")
    add("--output", type=Path, default=RESULTS, help="folder of the results")
    return parser.parse_args(arguments)


def main() -> None:
    """Entry point of the program; its status is 1 if something grows."""
    log_warnings_to_stderr()
    given = options_of(sys.argv[1:])
    size = Size(given.masters, given.workers, 8)
    content: dict[str, Any] = {"machine": machine()}
    parts, grows = [], False
    for database in given.database or DATABASES:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-bench-")))
            squeezed = {name: repr(value) for name, value in _SETTINGS.items()}
            squeezed["SHOAL_LOG_LEVEL"] = "warning"
            stack.enter_context(mock.patch.dict(os.environ, squeezed))
            logs = given.output / "week-logs"
            cluster = stack.enter_context(
                running(folder / "cluster", database, size, logs, POSTGRESQL)
            )
            samples = watch(cluster, given.minutes * 60.0, given.connections, given.real)
        watched = samples[len(samples) // 3 :]
        found = trends(watched, KEPT)
        grows |= any(one.grows for one in found if one.name not in HOURLY)
        parts.append(f"**{database}**\n\n{markdown(found, watched)}")
        content[database] = [asdict(one) for one in samples]
    report = "\n".join([*parts, machine(), ""])
    sys.stdout.write(report)
    given.output.mkdir(parents=True, exist_ok=True)
    (given.output / "week.md").write_text(report, encoding="utf-8")
    (given.output / "week.json").write_text(json.dumps(content, indent=1) + "\n")
    sys.exit(1 if grows else 0)


def watch(cluster: Running, for_s: float, connections: int, real: int) -> list[Sample]:
    """Ask for runs from all sides for so long; return what there was every few seconds."""
    work = {"type": "SHELL", "params": {"script": "echo hello"}}
    never = {"cases": [{"when": "1 == 2", "then": ["work"]}]}
    cluster.rest.publish(RUN, [{"name": "work", **work}])
    choose = {"name": "choose", "type": "SWITCH", "params": never}
    cluster.rest.publish(SWITCHED, [choose, {"name": "work", **work, "depends_on": ["choose"]}])
    callers = [_Caller(cluster.local.url, cluster.local.token, real) for _ in range(connections)]
    for caller in callers:
        caller.start()
    began, samples = time.monotonic(), []
    try:
        while (at_s := time.monotonic() - began) < for_s:
            cluster.require_sound()
            for caller in callers:
                caller.require_sound()
            runs = sum(caller.asked for caller in callers)
            samples.append(sample(cluster, at_s, runs))
            sys.stderr.write(_line(samples[-1]))
            time.sleep(SAMPLE_S)
    finally:
        for caller in callers:
            caller.is_over.set()
        for caller in callers:
            caller.join()
    return samples


class _Caller(threading.Thread):
    """Asks for one run after the other, as quickly as it is answered."""

    def __init__(self, url: str, token: str, real: int) -> None:
        super().__init__(daemon=True)
        self._rest, self._real = Rest(url, token), real
        self.asked = 0
        self.failure: SystemExit | OSError | None = None
        self.is_over = threading.Event()

    def run(self) -> None:
        try:
            while not self.is_over.is_set():
                self._rest.start(RUN if self.asked % self._real == 0 else SWITCHED)
                self.asked += 1
        except (SystemExit, OSError) as failure:
            self.failure = failure
        finally:
            self._rest.close()

    def require_sound(self) -> None:
        """Raise what has ended it."""
        if self.failure is not None:
            raise SystemExit(f"a caller ended: {self.failure}")


def sample(cluster: Running, at_s: float, runs: int) -> Sample:
    """Return what the cluster occupies now."""
    folder = cluster.folder
    workers = list((folder / "workers").glob("*/*"))
    found, bounds = memory()
    found |= {
        f"{DISK}: database": size_of(folder.glob("shoal.db*")),
        f"{DISK}: ZooKeeper": size_of([folder / "zookeeper"]),
        f"{DISK}: tasks' logs": size_of(one / "logs" for one in workers),
        f"{DISK}: work folders": size_of(one / "work" for one in workers),
        f"{DISK}: spool": size_of(one / "spool" for one in workers),
        f"{DISK}: logs of the roles": size_of([folder / "logs"]),
    }
    url = os.environ.get("SHOAL_DATABASE_URL") or f"sqlite:///{folder / 'shoal.db'}"
    found |= _of_database(url)
    if CONNECTIONS in found:
        bounds[f"{MEMORY}: PostgreSQL"] = CONNECTION_BYTES * found[CONNECTIONS]
    return Sample(at_s, runs, found, bounds)


def _of_database(url: str) -> dict[str, float]:
    engine = create_engine(read_url(url))
    try:
        with engine.connect() as connection:
            rows = {
                f"{ROWS}: {table}": float(
                    connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()  # noqa: S608
                )
                for table in TABLES
            }
            if engine.dialect.name == "postgresql":
                size = text("SELECT pg_database_size(current_database())")
                rows[f"{DISK}: database"] = float(connection.execute(size).scalar_one())
                clients = text("SELECT count(*) FROM pg_stat_activity WHERE datname IS NOT NULL")
                rows[CONNECTIONS] = float(connection.execute(clients).scalar_one())
    finally:
        engine.dispose()
    return rows


def _line(sample: Sample) -> str:
    memory_mb = sum(n for name, n in sample.levels.items() if name.startswith("memory")) / 2**20
    instances = sample.levels[f"{ROWS}: workflow_instance"]
    disk_mb = sample.levels[f"{DISK}: database"] / 2**20
    return (
        f"{sample.at_s:6.0f} s {sample.runs:9,} runs {instances:8,.0f} instances"
        f" {memory_mb:8.1f} MiB memory {disk_mb:8.1f} MiB database\n"
    )


if __name__ == "__main__":
    main()
