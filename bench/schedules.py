"""Measure one master with many schedules that are due in the same second.

Only what the database has to do with it: notifications and queue entries are left out, and so are
the masters' other duties. The clock is a fixed one, so nothing waits for a time to come.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.support.machine import machine
from bench.support.quiet import log_warnings_to_stderr
from shoal.core.definition.model import WorkflowSpec
from shoal.core.runs.run import Action, Run
from shoal.master.engine.engine import Engine
from shoal.master.services.commands.scanner import Scanner
from shoal.master.services.schedules import Scheduler
from shoal.master.services.service import MasterContext, UpkeepJobs
from shoal.master.settings import MasterSettings
from shoal.sql import Database

PARTITIONS = 128
FIRE_TIME = datetime(2026, 3, 2, 6, tzinfo=UTC)
TASK = {"name": "only", "type": "SHELL", "params": {"script": "true"}}


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.schedules", description=__doc__)
    parser.add_argument("--schedules", type=int, default=5_000, help="how many are due")
    parser.add_argument("--each", type=int, default=50, help="how many a workflow has")
    parser.add_argument("--database", help="URL of an empty database; default: a SQLite file")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or f"sqlite:///{Path(folder)}/shoal.db"
        report = asyncio.run(_measure(url, given.schedules, given.each))
    sys.stdout.write(report + "\n")


async def _measure(url: str, schedules: int, each: int) -> str:
    now = FIRE_TIME - timedelta(hours=1)

    async def nothing(_: Sequence[tuple[Run, tuple[Action, ...]]]) -> None: ...

    async with Database(url) as database:
        await database.migrate()
        await _publish(database, schedules, each, now)
        now = FIRE_TIME
        engine = Engine(database, nothing, lambda: now)
        await engine.take(dict.fromkeys(range(PARTITIONS), 1), "bench")
        context = MasterContext(
            database,
            engine,
            lambda: now,
            PARTITIONS,
            MasterSettings(scan_interval_s=60.0, max_open_instances=schedules + 1),
            UpkeepJobs(lambda: now),
            notify_owners=lambda _: None,
        )
        scheduler, scanner = Scheduler(context), Scanner(context)
        working = asyncio.create_task(engine.run())
        began = time.perf_counter()
        while await scheduler.fire_due() == 0.0:
            pass
        fired = time.perf_counter()
        await scanner.scan(range(PARTITIONS))
        created = time.perf_counter()
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        assert len(engine.runs) == schedules, "each schedule has one instance"
        kind = database.kind
    return (
        "| database | schedules due | all commands stored after s | all instances after s |\n"
        "| --- | ---: | ---: | ---: |\n"
        f"| {kind} | {schedules:,} | {fired - began:.1f} | {created - began:.1f} |\n\n{machine()}"
    )


async def _publish(database: Database, schedules: int, each: int, at: datetime) -> None:
    """Spread the schedules over workflows, and these over the partitions."""
    async with database.unit_of_work() as uow:
        await uow.partitions.ensure(PARTITIONS)
        await uow.commit()
    daily = {"cron": "0 0 6 * * ?", "timezone": "UTC"}
    for first in range(0, schedules, each):
        count = min(each, schedules - first)
        spec = WorkflowSpec.model_validate(
            {"name": f"w{first}", "tasks": [TASK], "schedules": [daily] * count}
        )
        async with database.unit_of_work() as uow:
            await uow.workflows.publish(spec, at)
            await uow.commit()


if __name__ == "__main__":
    main()
