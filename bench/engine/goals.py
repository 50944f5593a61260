"""What whole clusters are to reach, and how far they are from it.

The goals were set on a machine that starts 3,386 shells a second, 0.57 ms each; another machine
is compared by what its own processes cost.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.support.spawn_limit import SpawnLimit

REFERENCE_STARTS_PER_S = 3_386.0
REFERENCE_START_MS = 0.57


@dataclass(frozen=True)
class Goal:
    """A figure of a workload (see ``Line.figures``), or of the idle cluster."""

    workload: str
    figure: str
    bound: float
    text: str
    at_least: bool = False  # else at most

    def met(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def gap(self, value: float) -> str:
        """Return how many times better it would have to be."""
        if self.met(value):
            return "met"
        return f"{self.bound / value if self.at_least else value / self.bound:.1f} x short"

    def scaled(self, value: float, limit: SpawnLimit) -> float | None:
        """Return the value that is the same part of the limit on the machine of the goals."""
        match self.figure:
            case "tasks_per_s":
                return value * REFERENCE_STARTS_PER_S / limit.all
            case "median_ms" | "p99_ms":
                return value * REFERENCE_START_MS * limit.one / 1e3
        return None


IDLE = "idle"
GOALS = (
    *(
        Goal(workload, "tasks_per_s", bound, f"≥ {bound:,} tasks/s", at_least=True)
        for workload, bound in (
            ("WIDE 200", 1_000),
            ("WIDE 10,000", 1_000),
            ("MANY 100 x 5", 800),
            ("MANY 2,000 x 5", 800),
        )
    ),
    *(
        goal
        for workload, median, p99 in (
            ("CHAIN 20", 5, 20),
            ("CHAIN 200", 5, 20),
            ("TRIGGER", 10, 50),
        )
        for goal in (
            Goal(workload, "median_ms", median, f"median ≤ {median} ms"),
            Goal(workload, "p99_ms", p99, f"p99 ≤ {p99} ms"),
        )
    ),
    Goal(IDLE, "pss_mib", 400, "≤ 400 MiB (PSS)"),
    Goal(IDLE, "cpu_percent", 1.5, "≤ 1.5 % of a processor"),
)


def table(
    limit: SpawnLimit, found: Mapping[tuple[str, str], Mapping[str, float]], *, quiet: bool
) -> str:
    """Return each goal beside what is measured; ``found`` is by workload and database.

    Only what a ``quiet`` machine has shown says anything about another machine.
    """
    text = (
        "| workload | goal | database | measured | | on the goals' machine | |\n"
        "| --- | --- | --- | ---: | --- | ---: | --- |\n"
    )
    for goal in GOALS:
        for (workload, database), figures in found.items():
            if workload != goal.workload or goal.figure not in figures:
                continue
            value = figures[goal.figure]
            scaled = goal.scaled(value, limit) if quiet else None
            there = "| |" if scaled is None else f"{_number(scaled)} | {goal.gap(scaled)} |"
            text += (
                f"| {goal.workload} | {goal.text} | {database} | {_number(value)} "
                f"| {goal.gap(value)} | {there}\n"
            )
    return text


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value < 10 else f"{value:.1f}"
