"""What a task may cost: figures of a known state, and the room that a later one has.

The file holds ``counts`` (see counts_cli.py) and ``processor``, the processor time per task by
kind of process, in starts of ``sh -c true`` on the same machine at the same time.
"""

import json
from collections.abc import Mapping
from pathlib import Path

Costs = Mapping[str, Mapping[str, float]]  # by workload and kind
FILE = Path(__file__).with_name("budget.json")
# A doubling is to be noticed, an unlucky run is not.
FACTOR = 1.6
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


def room(known: float) -> float:
    """Return the most that something may cost which cost ``known``."""
    return FACTOR * known + LEAST


def over(known: Costs, found: Costs) -> list[str]:
    """Return what costs too much, in words."""
    return [
        f"{workload}: {cost:.2f} {kind} per task, {known[workload][kind]:.2f} in bench/budget.json"
        for workload, costs in found.items()
        for kind, cost in costs.items()
        if kind in known[workload] and cost > room(known[workload][kind])
    ]
