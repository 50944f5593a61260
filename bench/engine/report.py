"""The figures of whole clusters as Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.engine import goals
from bench.support.cluster import Size
from bench.support.processes import BENCH, LAUNCHER
from bench.support.spawn_limit import SpawnLimit
from bench.support.yardsticks import Yardsticks

TASKS = "the tasks themselves"
_QUIET = 0.8  # of the processors: with less, figures that depend on the clock are marked


@dataclass(frozen=True)
class Line:
    """One workload on one database."""

    database: str
    workload: str
    figures: Mapping[str, float]  # medians of the runs: tasks_per_s, median_ms, p99_ms
    runs: Sequence[Mapping[str, float]]  # the same of each run
    cpu_ms: Mapping[str, float]  # processor time per task, by kind of process

    @property
    def whole_ms(self) -> float:
        """Processor time per task of the cluster and its tasks, without the bench."""
        return sum(spent for kind, spent in self.cpu_ms.items() if kind != BENCH)


@dataclass(frozen=True)
class Idle:
    """A cluster without work. Bytes of memory (PSS) and percent of one processor, by kind."""

    database: str
    pss: Mapping[str, int]
    cpu_percent: Mapping[str, float]


def without_tasks(cpu_ms: Mapping[str, float], task_ms: float) -> dict[str, float]:
    """Return the processor times with what the tasks do apart from what starts them."""
    own = min(task_ms, cpu_ms.get(LAUNCHER, 0.0))
    return {**cpu_ms, LAUNCHER: cpu_ms.get(LAUNCHER, 0.0) - own, TASKS: own}


def markdown(by: Yardsticks, lines: Sequence[Line], idle: Sequence[Idle], size: Size) -> str:
    """Return all tables; what depends on the machine also as a ratio to the spawn limit, and
    processor time to a piece of Python too."""
    limit = by.spawn
    text = (
        f"{size.masters} master(s), {size.workers} worker(s) of {size.slots} slots. Starting "
        f"`sh -c true` alone: {limit.all:,.0f} a second with {limit.starters} starters; one after "
        f"the other {1e3 / limit.one:.2f} ms each; {limit.cpu_ms:.2f} ms of processor time each. "
        f"A piece of Python: {by.python.cpu_ms:.3f} ms of processor time.\n"
    )
    if limit.share < _QUIET:
        text += (
            f"\n**The machine had other work: the bench got {limit.share:.0%} of the processors.** "
            "Processor times hold; rates and latencies say little.\n"
        )
    parts = (_goals(limit, lines, idle), _rates(by, lines), _by_process(lines), _idle(idle))
    return "\n".join((text, *(part for part in parts if part)))


def _goals(limit: SpawnLimit, lines: Sequence[Line], idle: Sequence[Idle]) -> str:
    found = {(line.workload, line.database): line.figures for line in lines}
    for one in idle:
        found[goals.IDLE, one.database] = {
            "pss_mib": sum(one.pss.values()) / 2**20,
            "cpu_percent": sum(one.cpu_percent.values()),
        }
    return goals.table(limit, found, quiet=limit.share >= _QUIET)


def _rates(by: Yardsticks, lines: Sequence[Line]) -> str:
    limit = by.spawn
    text = (
        "| workload | database | tasks/s | of the spawn limit | median ms | in starts | p99 ms "
        "| processor ms per task | in starts | in pieces of Python "
        "| tasks/s that this allows |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    )
    for line in lines:
        rate, median = line.figures.get("tasks_per_s"), line.figures.get("median_ms")
        rates = "| |" if rate is None else f"{rate:,.0f} | 1 / {limit.all / rate:.1f} |"
        times = "| |" if median is None else f"{median:.1f} | {median * limit.one / 1e3:.1f} |"
        p99 = "" if median is None else f"{line.figures['p99_ms']:.1f}"
        text += (
            f"| {line.workload} | {line.database} | {rates} {times} {p99} "
            f"| {line.whole_ms:.2f} | {line.whole_ms / limit.cpu_ms:.1f} "
            f"| {line.whole_ms / by.python.cpu_ms:.1f} "
            f"| {limit.starters * 1e3 / line.whole_ms:,.0f} |\n"
        )
    return text


def _by_process(lines: Sequence[Line]) -> str:
    kinds = sorted({kind for line in lines for kind in line.cpu_ms} - {BENCH, TASKS})
    kinds += [TASKS, BENCH]
    text = "Processor time per task in ms:\n\n"
    text += f"| workload | database | {' | '.join(kinds)} |\n"
    text += f"| --- | --- |{' ---: |' * len(kinds)}\n"
    for line in lines:
        cells = " | ".join(f"{line.cpu_ms.get(kind, 0.0):.2f}" for kind in kinds)
        text += f"| {line.workload} | {line.database} | {cells} |\n"
    return text


def _idle(idle: Sequence[Idle]) -> str:
    if not idle:
        return ""
    kinds = sorted({kind for one in idle for kind in one.pss})
    text = "Idle, in MiB (PSS) and percent of a processor:\n\n"
    text += f"| database | whole | {' | '.join(kinds)} |\n| --- | ---: |{' ---: |' * len(kinds)}\n"
    for one in idle:
        parts = [(one.pss.get(kind, 0), one.cpu_percent.get(kind, 0.0)) for kind in kinds]
        whole = (sum(size for size, _ in parts), sum(percent for _, percent in parts))
        cells = " | ".join(
            f"{size / 2**20:.0f}, {percent:.2f} %" for size, percent in (whole, *parts)
        )
        text += f"| {one.database} | {cells} |\n"
    return text
