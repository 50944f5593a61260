"""The figures of whole clusters as Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.cluster import Size
from bench.spawn_limit import SpawnLimit


@dataclass(frozen=True)
class Line:
    """One workload on one database."""

    database: str
    workload: str
    figures: Mapping[str, float]
    cpu_ms: Mapping[str, float] = field(default_factory=dict)  # per task, by kind of process


@dataclass(frozen=True)
class Idle:
    """A cluster without work. Bytes of memory (PSS) and percent of one processor, by kind."""

    database: str
    pss: Mapping[str, int]
    cpu_percent: Mapping[str, float]


def markdown(
    limits: Sequence[SpawnLimit], lines: Sequence[Line], idle: Sequence[Idle], size: Size
) -> str:
    """Return all tables. Rates are also given as parts of the machine's spawn limit."""
    limit = sum(one.all for one in limits) / len(limits)
    one_start_ms = 1e3 * len(limits) / sum(one.one for one in limits)
    text = (
        f"{size.masters} master(s), {size.workers} worker(s) of {size.slots} slots. Starting "
        f"`sh -c true` alone: {limit:,.0f} a second with {limits[0].starters} starters, "
        f"{one_start_ms:.2f} ms for one.\n\n"
        "| workload | database | tasks/s | of the spawn limit | median ms | p99 ms "
        "| processor ms per task |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
    )
    for line in lines:
        rate = line.figures["tasks_per_s"]
        median, p99 = (_cell(line.figures.get(name)) for name in ("median_ms", "p99_ms"))
        text += (
            f"| {line.workload} | {line.database} | {rate:,.0f} | 1 / {limit / rate:.1f} "
            f"| {median} | {p99} | {sum(line.cpu_ms.values()):.2f} |\n"
        )
    return text + _by_process(lines) + _idle(idle)


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _by_process(lines: Sequence[Line]) -> str:
    kinds = sorted({kind for line in lines for kind in line.cpu_ms})
    text = "\nProcessor time per task in ms:\n\n"
    text += f"| workload | database | {' | '.join(kinds)} |\n"
    text += f"| --- | --- |{' ---: |' * len(kinds)}\n"
    for line in lines:
        cells = " | ".join(f"{line.cpu_ms.get(kind, 0.0):.2f}" for kind in kinds)
        text += f"| {line.workload} | {line.database} | {cells} |\n"
    return text


def _idle(idle: Sequence[Idle]) -> str:
    text = ""
    for one in idle:
        whole = sum(one.pss.values()) / 2**20
        text += (
            f"\nIdle with {one.database}: {whole:.0f} MiB (PSS), "
            f"{sum(one.cpu_percent.values()):.2f} % of a processor.\n\n"
            "| process | MiB | % of a processor |\n| --- | ---: | ---: |\n"
        )
        for kind, size in sorted(one.pss.items(), key=lambda item: -item[1]):
            percent = one.cpu_percent.get(kind, 0.0)
            text += f"| {kind} | {size / 2**20:.0f} | {percent:.2f} |\n"
    return text
