"""What the tests of the worker's own Spark Connect servers share."""

import asyncio
import itertools
import os
from pathlib import Path
from typing import Any

from shoal.proto import shoal_pb2 as pb
from tests.integration.worker.agent.kit import Process, children
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S, eventually

_PATIENCE_S = 2 * DEADLINE_S  # a JVM with Spark has to start, beside other tests
_tags = itertools.count(1)
_BEAT_MS = 100
# For each row, Spark calls a static method of Java that waits, and one that makes a folder.
_ENDLESS = """\
select count(slept), count(made) from (
  select
    reflect('java.lang.Thread', 'sleep', {beat_ms}L) as slept,
    reflect('org.apache.spark.network.util.JavaUtils', 'createDirectory', '{folder}', 'beat')
      as made
  from range(0, 1000000000, 1, 1))
"""


class Endless:
    """A query that does not end. It uses hardly any processor time; a folder shows that it runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.sql = _ENDLESS.format(beat_ms=_BEAT_MS, folder=folder)

    async def runs(self) -> None:
        """Return once the query is at work, from now on."""
        before = self._beats()
        await eventually(lambda: self._beats() > before, _PATIENCE_S)

    async def has_stopped(self) -> None:
        """Return once the query works no longer."""
        async with asyncio.timeout(DEADLINE_S):
            before = -1
            while (now := self._beats()) != before:
                before = now
                await asyncio.sleep(15 * _BEAT_MS / 1000)

    def _beats(self) -> int:
        return len(list(self._folder.iterdir())) if self._folder.exists() else 0


def servers(pid: int | None = None) -> list[Process]:
    """Return the servers below a process, this one if none is named, in the order of numbers."""
    found = _servers_below(os.getpid() if pid is None else pid)
    return sorted(found, key=lambda server: server.pid)


def _servers_below(pid: int) -> list[Process]:
    found = []
    for child in children(pid):
        if _is_server(child):
            # What is below it looks like it until it has become another program.
            found.append(child)
        else:
            found += _servers_below(child.pid)
    return found


def _is_server(process: Process) -> bool:
    is_jvm = "/bin/java" in process.args and "SparkConnectServer" in process.args
    # The one that writes the command line of the server is none.
    return is_jvm and "launcher.Main" not in process.args


async def ask(master: FakeMaster, sql: str, *, project: str = "tests", **params: Any) -> int:
    """Submit a SQL task on a data source without a host; return its number."""
    return await master.submit(
        "SQL",
        {"data_source": "lake", "sql": sql, **params},
        tag=f"shoal-{next(_tags)}",
        data_sources={"lake": pb.DataSource(kind="spark")},
        project=project,
    )


async def ended(master: FakeMaster, number: int) -> pb.Report:
    """Return the report about the end of a task."""
    task = await master.table.ended(number, timeout_s=_PATIENCE_S)
    assert task.report is not None
    return task.report
