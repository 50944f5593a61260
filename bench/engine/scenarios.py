"""The workloads: what is started, and what is read off the clocks of the tasks themselves."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from bench.support import processes
from bench.support.cluster import SETTLE_S, Running
from bench.support.stamps import PATIENCE_S, Stamps

Tasks = list[dict[str, Any]]
CONNECTIONS = 4  # over which MANY asks for its instances


@dataclass(frozen=True)
class Figures:
    """What one run of a workload has shown."""

    tasks: int
    # From the first request to the end of the last instance; None if that includes pauses.
    wall_s: float | None
    cpu_s: Mapping[str, float]  # from before the first request until all is done, by process kind
    latencies_ms: tuple[float, ...] = ()  # hops or triggers

    def named(self) -> dict[str, float]:
        """Return what is reported: ``tasks_per_s``, ``median_ms`` and ``p99_ms`` of latencies."""
        found = {} if self.wall_s is None else {"tasks_per_s": self.tasks / self.wall_s}
        if self.latencies_ms:
            ordered = sorted(self.latencies_ms)
            found["median_ms"] = statistics.median(ordered)
            found["p99_ms"] = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
        return found


@dataclass(frozen=True)
class Workload:
    """One line of the report."""

    name: str
    run: Callable[[Running], Figures]
    clocks: bool = False  # its tasks write the time down


def wide(tasks: int) -> Workload:
    """Independent tasks of one instance."""

    def define(script: str) -> Tasks:
        return [_task(f"t{n}", script) for n in range(tasks)]

    return Workload(f"WIDE {tasks:,}", partial(_timed, define, 1))


def many(instances: int) -> Workload:
    """Diamonds of five tasks (a; b, c, d; e), all asked for at once."""

    def define(script: str) -> Tasks:
        middle = [_task(name, script, "a") for name in "bcd"]
        return [_task("a", script), *middle, _task("e", script, "b", "c", "d")]

    return Workload(f"MANY {instances:,} x 5", partial(_timed, define, instances))


def chain(tasks: int) -> Workload:
    """Tasks in a line; a hop is from one task's first instruction to that of the next."""

    def define(script: str) -> Tasks:
        return [_task(f"t{n}", script, *([f"t{n - 1}"] if n else [])) for n in range(tasks)]

    return Workload(f"CHAIN {tasks}", partial(_timed, define, 1, hops=True), clocks=True)


def fan(tasks: int) -> Workload:
    """One task, many behind it, one behind those."""

    def define(script: str) -> Tasks:
        middle = [_task(f"t{n}", script, "first") for n in range(tasks)]
        last = _task("last", script, *(task["name"] for task in middle))
        return [_task("first", script), *middle, last]

    return Workload(f"FAN 1, {tasks:,}, 1", partial(_timed, define, 1))


def deep(levels: int, width: int) -> Workload:
    """Sub-workflows inside each other; each level has tasks of its own beside the next level."""

    def run(cluster: Running) -> Figures:
        stamps = Stamps(cluster)
        own = [_task(f"t{n}", stamps.count_script) for n in range(width)]
        cluster.rest.publish(f"{stamps.name}-{levels}", own)
        for level in range(levels - 1, 0, -1):
            inner = {
                "name": "inner",
                "type": "SUB_WORKFLOW",
                "params": {"workflow": f"{stamps.name}-{level + 1}"},
                "depends_on": ["t0"],
            }
            cluster.rest.publish(f"{stamps.name}-{level}", [*own, inner])
        return _measured(cluster, stamps, f"{stamps.name}-1", 1, levels * width)

    return Workload(f"DEEP {levels} x {width}", run)


def trigger(times: int) -> Workload:
    """From the REST call to the first instruction of the task, each on an idle cluster."""

    def run(cluster: Running) -> Figures:
        stamps = Stamps(cluster)
        cluster.rest.publish(stamps.name, [_task("only", stamps.clock_script)])
        called: list[float] = []
        with processes.metered() as cpu_s:
            for number in range(1, times + 1):
                called.append(time.time())
                cluster.rest.start(stamps.name)
                stamps.wait(number)
                time.sleep(SETTLE_S / 5)  # until its end is stored
        cluster.ended(stamps.name, times, PATIENCE_S)
        latencies = tuple((b - a) * 1e3 for a, b in zip(called, stamps.clocks_s(), strict=True))
        stamps.require(times)
        return Figures(times, None, cpu_s, latencies)

    return Workload("TRIGGER", run, clocks=True)


def _task(name: str, script: str, *after: str) -> dict[str, Any]:
    params = {"script": script}
    return {"name": name, "type": "SHELL", "params": params, "depends_on": list(after)}


def _timed(
    define: Callable[[str], Tasks], instances: int, cluster: Running, *, hops: bool = False
) -> Figures:
    """Run a workflow of shell tasks; ``define`` makes them from the script that they run."""
    stamps = Stamps(cluster)
    tasks = define(stamps.clock_script if hops else stamps.count_script)
    cluster.rest.publish(stamps.name, tasks)
    return _measured(cluster, stamps, stamps.name, instances, instances * len(tasks), hops=hops)


def _measured(
    cluster: Running,
    stamps: Stamps,
    workflow: str,
    instances: int,
    tasks: int,
    *,
    hops: bool = False,
) -> Figures:
    """Start a published workflow and wait for its end; until then nothing asks the API."""
    with processes.metered() as cpu_s:
        began = time.time()
        cluster.rest.start_many(workflow, instances, CONNECTIONS)
        stamps.wait(tasks)
        time.sleep(SETTLE_S)
    ended = cluster.ended(workflow, instances, PATIENCE_S)
    moments = stamps.clocks_s() if hops else []
    stamps.require(tasks)
    latencies = tuple((b - a) * 1e3 for a, b in pairwise(moments))
    return Figures(tasks, ended - began, cpu_s, latencies)
