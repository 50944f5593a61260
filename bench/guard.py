"""Fail if a task costs much more processor time than it did when bench/budget.json was written.

Processor time hardly depends on what else the machine does. How quick the machine is cancels out:
all is told in starts of ``sh -c true`` and in pieces of Python (python_work.py), both measured just
before and after. Their prices differ from one make of processor to the next, so only what is too
dear by both of them is. The least of some rounds counts, and as soon as all is within its bounds
there are no further rounds.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.counts import budget
from bench.counts.budget import Costs, chosen
from bench.engine.scenarios import Workload, many, wide
from bench.support import yardsticks
from bench.support.cluster import Running, Size, running
from bench.support.machine import RESULTS
from bench.support.quiet import log_warnings_to_stderr

ROUNDS = 6
STARTS, PIECES = "process starts", "pieces of Python"  # sections of the budget as well
# ZooKeeper's compiler works longest at the start: its requests are counted instead.
KINDS = ("master", "worker agent", "launcher and tasks", "api")


def workloads() -> Sequence[Workload]:
    """Return what is run, some seconds each: what keeps the processors busy.

    Where tasks wait for each other (CHAIN) the processors sleep and wake, which costs more the
    more else they do; there requests are counted instead, see counts_cli.py.
    """
    return (wide(300), many(60))


def round_of(cluster: Running) -> Mapping[str, Costs]:
    """Run each workload once; return the costs by yardstick."""
    found: dict[str, dict[str, dict[str, float]]] = {STARTS: {}, PIECES: {}}
    for workload in workloads():
        before = yardsticks.measure()
        run = workload.run(cluster)
        after = yardsticks.measure()
        each_ms = {
            STARTS: (before.spawn.cpu_ms + after.spawn.cpu_ms) / 2,
            PIECES: (before.python.cpu_ms + after.python.cpu_ms) / 2,
        }
        for yardstick, one_ms in each_ms.items():
            found[yardstick][workload.name] = {
                kind: run.cpu_s.get(kind, 0.0) / run.tasks * 1e3 / one_ms for kind in KINDS
            }
    return found


def too_dear(known: Mapping[str, Costs], found: Mapping[str, Costs]) -> list[str]:
    """Return in words what costs too much by every yardstick."""
    over = {
        (workload, kind)
        for workload, costs in found[STARTS].items()
        for kind in costs
        if all(_is_over(known[by], found[by], workload, kind) for by in found)
    }
    return [
        said
        for by in found
        for workload, kind in sorted(over)
        for said in budget.over(known[by], {workload: {kind: found[by][workload][kind]}}, unit=by)
    ]


def _is_over(known: Costs, found: Costs, workload: str, kind: str) -> bool:
    return bool(budget.over(known, {workload: {kind: found[workload][kind]}}))


def table(known: Mapping[str, Costs], found: Mapping[str, Costs]) -> str:
    """Return what was found beside what is known, as Markdown."""
    text = "| processor time per task | in | known | now | at most |\n"
    text += "| --- | --- | ---: | ---: | ---: |\n"
    for yardstick, of_workloads in found.items():
        for workload, costs in of_workloads.items():
            for kind, cost in costs.items():
                before = known.get(yardstick, {}).get(workload, {}).get(kind, cost)
                text += (
                    f"| {workload}, {kind} | {yardstick} | {before:.2f} | {cost:.2f} "
                    f"| {budget.room(before):.2f} |\n"
                )
    return text


def main() -> None:
    """Entry point of the program."""
    log_warnings_to_stderr()
    parser = argparse.ArgumentParser(prog="python -m bench.guard", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the figures to budget.json")
    record = parser.parse_args().record
    known = {} if record else {by: budget.read(by) for by in (STARTS, PIECES)}
    rounds: list[Mapping[str, Costs]] = []
    choose = statistics.median if record else min
    with (
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
        running(Path(folder) / "cluster", "sqlite", Size(), RESULTS / "guard-logs") as cluster,
    ):
        wide(50).run(cluster)
        while len(rounds) < ROUNDS:
            rounds.append(round_of(cluster))
            found = {by: chosen([one[by] for one in rounds], choose) for by in (STARTS, PIECES)}
            if not record and not too_dear(known, found):
                break
    sys.stdout.write(table(known, found))
    if record:
        for by, costs in found.items():
            budget.record(by, costs)
    elif too_much := too_dear(known, found):
        raise SystemExit("A task costs too much:\n" + "\n".join(too_much))


if __name__ == "__main__":
    main()
