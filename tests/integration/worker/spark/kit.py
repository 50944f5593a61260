"""What the tests of the worker's own Spark Connect servers share."""

import itertools
import os
import time
from pathlib import Path
from typing import Any

from shoal.proto import shoal_pb2 as pb
from tests.integration.worker.agent_kit import Process, descendants
from tests.support.fake_master import FakeMaster
from tests.support.waiting import DEADLINE_S

_PATIENCE_S = 2 * DEADLINE_S  # a JVM with Spark has to start, beside other tests
_tags = itertools.count(1)
#: A query that keeps all processors busy and does not end.
ENDLESS = "select count(*) from range(100000000000000)"


def servers(pid: int | None = None) -> list[Process]:
    """Return the servers below a process, this one if none is named, in the order of numbers."""
    below = descendants(os.getpid() if pid is None else pid)
    jvms = [p for p in below if "/bin/java" in p.args and "SparkConnectServer" in p.args]
    # The one that writes the command line of the server is none.
    found = {jvm.pid: jvm for jvm in jvms if "launcher.Main" not in jvm.args}
    return [found[number] for number in sorted(found)]


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
