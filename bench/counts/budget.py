"""What a task may cost: figures of a known state, and the room that a later one has.

The file holds ``counts`` (see counts_cli.py), which tests judge, and what ``make bench`` judges:
the processor time per task by kind of process, in ``process starts`` (of ``sh -c true``) and in
``pieces of Python`` (see python_work.py), both on the same machine at the same time.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from bench.support.machine import CHECKOUT

Costs = Mapping[str, Mapping[str, float]]  # by workload and kind
FILE = CHECKOUT / "bench" / "budget.json"
# A doubling is to be noticed, an unlucky run is not.
FACTOR = 1.6
# Counts hardly vary, and those in the file are the most of some rounds on a busy machine.
FACTOR_OF_COUNTS = 1.25
# What little things may differ by: a thing per ten tasks, a tenth of a start.
LEAST = 0.1


def read(section: str) -> Costs:
    """Return one section of the file."""
    found: dict[str, Costs] = json.loads(FILE.read_text(encoding="utf-8"))
    return found[section]


def record(section: str, costs: Costs) -> None:
    """Write one section of the file anew."""
    content = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    content[section] = {w: {k: round(v, 3) for k, v in c.items()} for w, c in costs.items()}
    FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def chosen(rounds: Sequence[Costs], choose: Callable[[Iterable[float]], float]) -> Costs:
    """Return one figure of each kind for all rounds, such as the least."""
    return {
        workload: {
            kind: choose(one[workload].get(kind, 0.0) for one in rounds)
            for kind in dict.fromkeys(kind for one in rounds for kind in one[workload])
        }
        for workload in rounds[0]
    }


def room(known: float, factor: float = FACTOR) -> float:
    """Return the most that something may cost which cost ``known``."""
    return factor * known + LEAST


def over(known: Costs, found: Costs, factor: float = FACTOR, unit: str = "") -> list[str]:
    """Return what costs too much, in words; ``unit`` is that of the costs of a section."""
    of = f"{unit} of " if unit else ""
    return [
        f"{workload}: {cost:.2f} {of}{kind} per task, {known[workload][kind]:.2f} in "
        "bench/budget.json"
        for workload, costs in found.items()
        for kind, cost in costs.items()
        if kind in known[workload] and cost > room(known[workload][kind], factor)
    ]
