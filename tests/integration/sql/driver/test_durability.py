"""A process that is killed in the middle of its writes: what it had committed is there, whole."""

import asyncio
import sys
from itertools import groupby

from sqlalchemy import text

from shoal.sql import Database
from tests.integration.sql.given import definition, published

TASKS = 20
BATCH = 10
WRITER = f"""\
import asyncio, sys
from shoal.sql import Database
from tests.integration.sql.given import NOW, instance, start
from tests.support.instances import create

async def main(url, workflow_id, first):
    async with Database(url) as database:
        for n in range(first, first + 10_000):
            async with database.unit_of_work() as uow:
                commands = await uow.commands.add_many(
                    [start(workflow_id, f"{{n}}.{{i}}") for i in range({BATCH})], NOW
                )
                await create(uow, [instance(command) for command, _ in commands])
                await uow.commit()
            print(n, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


async def test_killed_writer_leaves_whole_transactions(database: Database, ready_url: str) -> None:
    workflow_id = await published(database, definition(tasks=[f"t{i}" for i in range(TASKS)]))
    committed: list[int] = []
    for round_number in range(2):
        committed += await _write_until_killed(ready_url, workflow_id, round_number, 3)
        if database.kind == "sqlite":
            async with database.unit_of_work(read_only=True) as uow:
                assert await uow.connection.scalar(text("PRAGMA integrity_check")) == "ok"
                assert await uow.connection.rows(text("PRAGMA foreign_key_check")) == []
    async with database.unit_of_work(read_only=True) as uow:
        keys = [c.idempotency_key for c in await uow.commands.starts([0], 1_000_000)]
        runs = await uow.instances.open_runs(0)
        events = await uow.events.after(0, 1_000_000)
    batches = {
        int(n): len(list(of_batch)) for n, of_batch in groupby(keys, lambda k: k.split(".")[0])
    }
    assert set(committed) <= set(batches), "a commit that was reported is lost"
    assert set(batches.values()) == {BATCH}
    assert len(runs) == len(keys)
    assert all(len(run.attempts) == TASKS for run in runs)
    assert len([e for e in events if e.kind == "instance.state"]) == len(runs)


async def _write_until_killed(
    url: str, workflow_id: int, round_number: int, commits: int
) -> list[int]:
    """Kill a writer right after some commits, in the next transaction; return those commits."""
    first = round_number * 100_000
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        WRITER,
        url,
        str(workflow_id),
        str(first),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        told = [await process.stdout.readline() for _ in range(commits)]
    finally:
        process.kill()
    rest = await process.stdout.read()
    await process.wait()
    assert process.returncode == -9
    return [int(line) for line in b"".join([*told, rest]).split()]
