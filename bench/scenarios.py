"""The workloads: what is started, and what is read off the clocks of the tasks themselves.

Every task writes a file, once: ``date`` with nanoseconds into it where moments are compared
(CHAIN, TRIGGER, FAN), nothing where tasks are counted; then the file's own time stamps it. So
lost and doubled tasks are noticed here, too.
"""

import os
import shutil
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import count, pairwise
from typing import Any

from bench.cluster import TIMEOUT_S, Running

Tasks = list[dict[str, Any]]
_numbers = count(1)
_LOOK_S = 0.02


@dataclass(frozen=True)
class Figures:
    """What one run of a workload has shown. Times are in milliseconds."""

    tasks: int
    wall_s: float  # from the first request to the end of the last task
    latencies_ms: tuple[float, ...] = ()  # hops or triggers

    @property
    def tasks_per_s(self) -> float:
        return self.tasks / self.wall_s

    @property
    def median_ms(self) -> float:
        return statistics.median(self.latencies_ms)

    @property
    def p99_ms(self) -> float:
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


@dataclass(frozen=True)
class Workload:
    """One line of the report."""

    name: str
    run: Callable[[Running], Figures]


class _Stamps:
    """A folder into which the tasks of one run write."""

    def __init__(self, cluster: Running) -> None:
        self.name = f"w{next(_numbers)}"
        self.folder = cluster.folder / "stamps" / self.name
        self.folder.mkdir(parents=True)

    @property
    def script_count(self) -> str:
        """Leave a file, without a further process."""
        return f': > "{self.folder}/$SHOAL_TASK_INSTANCE_ID"'

    @property
    def script_clock(self) -> str:
        """Leave a file with the time at which the task's first instruction ran."""
        return f'date +%s%N > "{self.folder}/$SHOAL_TASK_INSTANCE_ID"'

    def wait(self, tasks: int) -> None:
        """Return when so many have begun; without asking the API, which costs something."""
        deadline = time.monotonic() + TIMEOUT_S
        while (found := sum(1 for entry in os.scandir(self.folder))) < tasks:
            if time.monotonic() > deadline:
                raise SystemExit(f"{self.name}: only {found} of {tasks} tasks have begun")
            time.sleep(_LOOK_S + found * 1e-6)

    def clocks_s(self) -> list[float]:
        """Return the moments that tasks wrote down, ascending: seconds since the epoch."""
        return sorted(int(path.read_text()) / 1e9 for path in self.folder.iterdir())

    def require(self, tasks: int) -> None:
        """Make sure that every task has run."""
        found = sum(1 for _ in self.folder.iterdir())
        if found != tasks:
            raise SystemExit(f"{self.name}: {found} tasks have run instead of {tasks}")
        shutil.rmtree(self.folder)


def _task(name: str, script: str, *after: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "SHELL",
        "params": {"script": script},
        "depends_on": list(after),
    }


def wide(tasks: int) -> Workload:
    """Independent tasks of one instance."""

    def run(cluster: Running) -> Figures:
        stamps = _Stamps(cluster)
        definition = [_task(f"t{n}", stamps.script_count) for n in range(tasks)]
        return _timed(cluster, stamps, definition, 1)

    return Workload(f"WIDE {tasks:,}", run)


def many(instances: int) -> Workload:
    """Diamonds of five tasks (a; b, c, d; e), all started as quickly as one client can."""

    def run(cluster: Running) -> Figures:
        stamps = _Stamps(cluster)
        script = stamps.script_count
        middle = [_task(name, script, "a") for name in "bcd"]
        definition = [_task("a", script), *middle, _task("e", script, "b", "c", "d")]
        return _timed(cluster, stamps, definition, instances)

    return Workload(f"MANY {instances:,} x 5", run)


def chain(tasks: int) -> Workload:
    """Tasks in a line; a hop is from one task's first instruction to that of the next."""

    def run(cluster: Running) -> Figures:
        stamps = _Stamps(cluster)
        script = stamps.script_clock
        definition = [_task(f"t{n}", script, *([f"t{n - 1}"] if n else [])) for n in range(tasks)]
        return _timed(cluster, stamps, definition, 1, hops=True)

    return Workload(f"CHAIN {tasks}", run)


def fan(tasks: int) -> Workload:
    """One task, many behind it, one behind those."""

    def run(cluster: Running) -> Figures:
        stamps = _Stamps(cluster)
        script = stamps.script_count
        middle = [_task(f"t{n}", script, "first") for n in range(tasks)]
        last = _task("last", script, *(task["name"] for task in middle))
        return _timed(cluster, stamps, [_task("first", script), *middle, last], 1)

    return Workload(f"FAN 1, {tasks:,}, 1", run)


def deep(levels: int, width: int) -> Workload:
    """Sub-workflows inside each other; each level has tasks of its own beside the next level."""

    def run(cluster: Running) -> Figures:
        stamps = _Stamps(cluster)
        own = [_task(f"t{n}", stamps.script_count) for n in range(width)]
        cluster.rest.publish(f"{stamps.name}-{levels}", own)
        for level in range(levels - 1, 0, -1):
            inner = {
                "name": "inner",
                "type": "SUB_WORKFLOW",
                "params": {"workflow": f"{stamps.name}-{level + 1}"},
                "depends_on": ["t0"],
            }
            cluster.rest.publish(f"{stamps.name}-{level}", [*own, inner])
        began = time.time()
        cluster.rest.start(f"{stamps.name}-1")
        stamps.wait(levels * width)
        ended = cluster.rest.ended(f"{stamps.name}-1", 1)
        stamps.require(levels * width)
        return Figures(levels * width, _moment(ended[0]["finished_at"]) - began)

    return Workload(f"DEEP {levels} x {width}", run)


def trigger(times: int) -> Workload:
    """From the REST call to the first instruction of the task, one after the other."""

    def run(cluster: Running) -> Figures:
        stamps = _Stamps(cluster)
        cluster.rest.publish(stamps.name, [_task("only", stamps.script_clock)])
        called: list[float] = []
        for number in range(1, times + 1):
            called.append(time.time())
            cluster.rest.start(stamps.name)
            stamps.wait(number)
        cluster.rest.ended(stamps.name, times)
        started = stamps.clocks_s()
        latencies = tuple((b - a) * 1e3 for a, b in zip(called, started, strict=True))
        stamps.require(times)
        return Figures(times, started[-1] - called[0], latencies)

    return Workload("TRIGGER", run)


def _timed(
    cluster: Running, stamps: _Stamps, definition: Tasks, instances: int, *, hops: bool = False
) -> Figures:
    cluster.rest.publish(stamps.name, definition)
    began = time.time()
    for _ in range(instances):
        cluster.rest.start(stamps.name)
    tasks = instances * len(definition)
    stamps.wait(tasks)
    ended = cluster.rest.ended(stamps.name, instances)
    moments = stamps.clocks_s() if hops else []
    stamps.require(tasks)
    wall_s = max(_moment(instance["finished_at"]) for instance in ended) - began
    latencies = tuple((b - a) * 1e3 for a, b in pairwise(moments))
    return Figures(tasks, wall_s, latencies)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def summary(runs: list[Figures]) -> Mapping[str, float]:
    """Return the medians over several runs of one workload."""
    found = {"tasks_per_s": statistics.median(run.tasks_per_s for run in runs)}
    if runs[0].latencies_ms:
        found["median_ms"] = statistics.median(run.median_ms for run in runs)
        found["p99_ms"] = statistics.median(run.p99_ms for run in runs)
    return found
