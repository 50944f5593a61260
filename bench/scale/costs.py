"""What the scale model is fed with: measured costs, and what is assumed about machines."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.counts import budget
from bench.counts.counting import REQUESTS
from bench.engine.report import TASKS
from bench.support.processes import LAUNCHER


@dataclass(frozen=True)
class Costs:
    """Of one task, processor time in ms; the rest in ms or by the second as it says."""

    master: float
    agent: float
    launcher: float  # with the task itself
    database: float  # of the server
    zookeeper: float  # of the server, when all share one machine
    api: float
    requests: float  # to ZooKeeper
    # From here on as measured on their own, on two cores (docs/performance.md says where).
    commit_ms: float = 0.30  # latency of a commit of the database
    write_ms: float = 0.20  # a write keeps ZooKeeper's leader busy so long: 5,000 a second
    read_ms: float = 0.075  # a read one of its servers: 13,500 a second
    name_ms: float = 0.0003  # and so much more for each name in a list
    answer_ms: float = 0.06  # an answer of ZooKeeper the processor of the client
    trip_ms: float = 0.2  # there and back between two machines
    load_ms: float = 0.62  # taking over an open instance
    join_ms: float = 0.01  # a request to the group of masters, for each member of it

    @classmethod
    def measured(cls, engine: Path, workload: str | None, database: str) -> "Costs":
        """Return the costs that bench.engine has written for a workload.

        None: for the last WIDE there is. Raises SystemExit if there is none.
        """
        lines = json.loads(engine.read_text(encoding="utf-8"))["lines"]
        found: list[Mapping[str, Any]] = [
            line["cpu_ms"]
            for line in lines
            if line["database"] == database and line["workload"].startswith(workload or "WIDE")
        ]
        if not found:
            raise SystemExit(
                f"{engine} has no {workload or 'WIDE'} on {database}; run bench.engine"
            )
        cpu = found[-1]
        return cls(
            master=cpu["master"],
            agent=cpu["worker agent"],
            launcher=cpu[LAUNCHER] + cpu[TASKS],
            database=cpu.get("PostgreSQL", 0.0),
            zookeeper=cpu["ZooKeeper"],
            api=cpu["api"],
            requests=budget.read("counts")["WIDE 200"][REQUESTS],
        )


@dataclass(frozen=True)
class Cluster:
    """Machines. ``together``: everything shares the processors of one."""

    masters: int
    workers: int
    slots: int = 8  # of each worker
    together: int = 0
    worker_processors: int = 2
    database_processors: int = 8
    zookeepers: int = 3
    groups: int = 1  # of workers, alike: each has a queue and claimers of its own
    load_s: float = 1.0  # a busy worker announces its load so often
    reread_s: float = 5.0  # masters look at all workers so often, claimers at each other
    session_timeout_s: float = 10.0
    partitions: int = 128

    @property
    def name(self) -> str:
        return f"{self.masters} masters, {self.workers:,} workers"
