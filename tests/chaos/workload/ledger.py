"""The ledger that the tasks of the fault suite write about themselves; see ``task.py``.

Times are nanoseconds of CLOCK_BOOTTIME, one clock for all processes of the machine.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """What a row says."""

    START = "START"
    END = "END"  # the last thing before the process ends by itself
    CHILD = "CHILD"  # a process that the task left behind
    DUPLICATE = "DUPLICATE"  # another run of the same task of the same instance is alive


@dataclass(frozen=True)
class Row:
    """One row. ``ticks`` is the start time of process ``pid``: the two together are unique."""

    kind: Kind
    instance: int
    task: str
    attempt: int
    task_instance_id: int
    epoch: int
    pid: int
    ticks: int
    boot_ns: int
    wall_ns: int
    cwd: str = ""  # START
    program: int = 0  # START: version of the program, if that is a resource
    exit: int = 0  # END: the exit code that follows
    sha256: str = ""  # END: of all that was printed
    size: int = 0  # END: bytes printed


@dataclass(frozen=True)
class Run:
    """One process of the ledger: its START row, and its END row if it came so far."""

    start: Row
    end: Row | None

    @property
    def completed(self) -> bool:
        return self.end is not None

    @property
    def exit(self) -> int | None:
        """The exit code; None if it was killed."""
        return None if self.end is None else self.end.exit


def read(folder: Path) -> list[Row]:
    """Return all rows, oldest first. A row torn by a kill is not a row."""
    rows = [row for file in sorted(folder.glob("*.jsonl")) for row in _rows(file)]
    return sorted(rows, key=lambda row: row.boot_ns)


def _rows(file: Path) -> Iterable[Row]:
    for line in file.read_bytes().splitlines():
        try:
            fields = json.loads(line)
            yield Row(**{**fields, "kind": Kind(fields["kind"])})
        except (ValueError, TypeError, KeyError):
            continue


def runs(rows: Iterable[Row]) -> list[Run]:
    """Return the runs of a ledger by the time of their start."""
    ends: dict[tuple[int, int, int], Row] = {}
    starts: list[Row] = []
    for row in rows:
        if row.kind is Kind.END:
            ends[row.task_instance_id, row.pid, row.ticks] = row
        elif row.kind is Kind.START:
            starts.append(row)
    starts.sort(key=lambda row: row.boot_ns)
    return [Run(row, ends.get((row.task_instance_id, row.pid, row.ticks))) for row in starts]


def overlaps(of_one_task: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Return pairs of which the second started before the first had ended, by their times."""
    found, last = [], None
    for run in of_one_task:
        if last is not None and last.end is not None and run.start.boot_ns < last.end.boot_ns:
            found.append((last, run))
        if run.end is not None and (last is None or last.end is None or _later(run, last)):
            last = run
    return found


def _later(one: Run, other: Run) -> bool:
    return one.end is not None and other.end is not None and one.end.boot_ns > other.end.boot_ns
