"""What the tests of the worker's own Spark Connect servers share."""

import itertools
import os
import time
from pathlib import Path
from typing import Any

from shoal.proto import shoal_pb2 as pb
from tests.integration.worker.agent_kit import Process, children
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S

_PATIENCE_S = 2 * DEADLINE_S  # a JVM with Spark has to start, beside other tests
_tags = itertools.count(1)
#: A query that keeps all processors busy and does not end.
ENDLESS = "select count(*) from range(100000000000000)"


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


def processor_s(pid: int) -> float:
    """Return the processor time of a process; see proc(5)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_busy(pid: int) -> bool:
    """Return whether a process has used more than a tenth of a processor just now. Blocks."""
    before, began = processor_s(pid), time.monotonic()
    time.sleep(0.5)
    return processor_s(pid) - before > 0.1 * (time.monotonic() - began)
