"""Fail if a task costs much more processor time than it did when bench/budget.json was written.

Processor time hardly depends on what else the machine does; how quick the machine is cancels
out, as all is told in starts of ``sh -c true``, measured just before and after. The least of some
rounds counts, and as soon as all is within its bounds there are no further rounds.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench import budget, spawn_limit
from bench.budget import Costs
from bench.cluster import Running, Size, running
from bench.engine_cli import RESULTS
from bench.quiet import log_warnings_to_stderr
from bench.scenarios import Workload, many, wide

ROUNDS = 6
SECTION = "processor"
# ZooKeeper's compiler works longest at the start: its requests are counted instead.
KINDS = ("master", "worker agent", "launcher and tasks", "api")


def workloads() -> Sequence[Workload]:
    """Return what is run, some seconds each: what keeps the processors busy.

    Where tasks wait for each other (CHAIN) the processors sleep and wake, which costs more the
    more else they do; there requests are counted instead, see counts_cli.py.
    """
    return (wide(300), many(60))


def round_of(cluster: Running) -> Costs:
    """Run each workload once; return the costs in process starts."""
    found: dict[str, dict[str, float]] = {}
    for workload in workloads():
        before = spawn_limit.measure()
        run = workload.run(cluster)
        start_s = (before.cpu_ms + spawn_limit.measure().cpu_ms) / 2e3
        found[workload.name] = {
            kind: run.cpu_s.get(kind, 0.0) / run.tasks / start_s for kind in KINDS
        }
    return found


def table(known: Costs, found: Costs) -> str:
    """Return what was found beside what is known, as Markdown."""
    text = "| processor time per task, in process starts | known | now | at most |\n"
    text += "| --- | ---: | ---: | ---: |\n"
    for workload, costs in found.items():
        for kind, cost in costs.items():
            before = known.get(workload, {}).get(kind, cost)
            bound = budget.room(before)
            text += f"| {workload}, {kind} | {before:.2f} | {cost:.2f} | {bound:.2f} |\n"
    return text


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python bench/guard.py", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the figures to budget.json")
    record = parser.parse_args().record
    known: Costs = {} if record else budget.read(SECTION)
    rounds: list[Costs] = []
    choose = statistics.median if record else min
    with (
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
        running(Path(folder) / "cluster", "sqlite", Size(), RESULTS / "guard-logs") as cluster,
    ):
        wide(50).run(cluster)
        while len(rounds) < ROUNDS:
            rounds.append(round_of(cluster))
            found = {
                workload: {k: choose(one[workload][k] for one in rounds) for k in KINDS}
                for workload in rounds[0]
            }
            if not record and not budget.over(known, found):
                break
    sys.stdout.write(table(known, found))
    if record:
        budget.record(SECTION, found)
    elif too_much := budget.over(known, found):
        raise SystemExit("A task costs too much:\n" + "\n".join(too_much))
