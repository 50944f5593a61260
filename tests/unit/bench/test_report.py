"""What the report of whole clusters says, and when it says that its figures say little."""

import pytest

from bench.engine.report import TASKS, Idle, Line, markdown, without_tasks
from bench.support.cluster import Size
from bench.support.processes import BENCH, LAUNCHER
from bench.support.python_work import PythonWork
from bench.support.spawn_limit import SpawnLimit
from bench.support.yardsticks import Yardsticks

PIECE = PythonWork(cpu_ms=0.25)
QUIET = Yardsticks(SpawnLimit(900, 1_800, 2, cpu_ms=1.0, count_ms=1.2, clock_ms=2.9), PIECE)
BUSY = Yardsticks(SpawnLimit(90, 180, 2, cpu_ms=1.0, count_ms=1.2, clock_ms=2.9), PIECE)
CPU = {"master": 1.0, LAUNCHER: 2.0, BENCH: 0.5}
LINES = [
    Line("sqlite", "WIDE 200", {"tasks_per_s": 600.0}, [], without_tasks(CPU, 1.2)),
    Line("sqlite", "TRIGGER", {"median_ms": 9.0, "p99_ms": 40.0}, [], without_tasks(CPU, 2.9)),
]
IDLE = [Idle("sqlite", {"master": 100 * 2**20}, {"master": 0.5})]


def test_every_workload_stands_beside_the_limit_and_its_goal() -> None:
    text = markdown(QUIET, LINES, IDLE, Size())
    assert "| WIDE 200 | ≥ 1,000 tasks/s | sqlite | 600 | 1.7 x short | 1,129 | met |" in text
    assert "| WIDE 200 | sqlite | 600 | 1 / 3.0 | | |  | 3.00 | 3.0 | 12.0 | 667 |" in text
    assert "| TRIGGER | sqlite | | | 9.0 | 8.1 | 40.0 | 3.00 | 3.0 | 12.0 | 667 |" in text
    assert "| sqlite | 100, 0.50 % | 100, 0.50 % |" in text
    assert "other work" not in text


def test_a_busy_machine_is_told_of() -> None:
    assert "got 9% of the processors" in markdown(BUSY, LINES, [], Size())


def test_what_tasks_do_themselves_is_apart_from_what_starts_them() -> None:
    found = without_tasks(CPU, 1.2)
    assert found[LAUNCHER] == pytest.approx(0.8)
    assert found[TASKS] == 1.2
    assert without_tasks(CPU, 3.0)[LAUNCHER] == 0.0
