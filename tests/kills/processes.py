"""Processes of tasks on this machine, by what stands in their environment.

Shoal tells each process which attempt it is of; a process at an SSH host has the tag of its task
beside that. What is found belongs to a case by the name of its workflow.
"""

import os
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.kills.plan import MARKER

_TICKS = os.sysconf("SC_CLK_TCK")
_MAY_EXEC_S = 5.0  # a process this young may still become another program
_GONE = frozenset({"Z", "X"})


@dataclass(frozen=True)
class Process:
    """One process; ``start`` (ticks since boot) tells it from a later one of the same number."""

    pid: int
    start: int
    parent: int
    marker: str
    attempt: str  # id of the task instance
    remote: bool  # it runs at an SSH host, which is this machine


Jobs = Mapping[str, Mapping[str, list[Process]]]  # by marker and attempt


class Processes:
    """Looks at all processes; keeps what it knows of those that it has seen."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[str, str, bool] | None] = {}

    def look(self) -> list[Process]:
        """Return the live processes of all cases."""
        found, known = [], {}
        for name in os.listdir("/proc"):
            if not name.isdigit() or (stat := _stat(int(name))) is None:
                continue
            state, parent, start = stat
            if state in _GONE:
                continue
            key = (int(name), start)
            young = time.clock_gettime(time.CLOCK_BOOTTIME) - start / _TICKS < _MAY_EXEC_S
            identity = self._known.get(key)
            if identity is None and (young or key not in self._known):
                identity = _identity(int(name))
            known[key] = identity
            if identity is not None:
                found.append(Process(int(name), start, parent, *identity))
        self._known = known
        return found


def is_alive(process: Process) -> bool:
    """Return whether it is there still, the same one."""
    stat = _stat(process.pid)
    return stat is not None and stat[0] not in _GONE and stat[2] == process.start


def jobs(processes: list[Process], *, remote: bool) -> Jobs:
    """Return the processes at an SSH host, or the others, by case and attempt."""
    found: dict[str, dict[str, list[Process]]] = defaultdict(lambda: defaultdict(list))
    for process in processes:
        if process.remote is remote:
            found[process.marker][process.attempt].append(process)
    return found


def top(processes: list[Process]) -> Process | None:
    """Return the process of an attempt that is above the others."""
    pids = {process.pid for process in processes}
    tops = [process for process in processes if process.parent not in pids]
    return min(tops, key=lambda process: process.start, default=None)


def parent_of(pid: int) -> int:
    """Return the parent of a process; 0 if there is none."""
    stat = _stat(pid)
    return stat[1] if stat else 0


def _stat(pid: int) -> tuple[str, int, int] | None:
    """Return state, parent and start of a process; None if it is gone."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[1]), int(fields[19])
    return None


def _identity(pid: int) -> tuple[str, str, bool] | None:
    with suppress(OSError):
        text = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace")
        variables = dict(line.partition("=")[::2] for line in text.split("\0"))
        marker = variables.get("SHOAL_WORKFLOW", "")
        if MARKER.fullmatch(marker):
            remote = "SHOAL_REMOTE_TAG" in variables
            return marker, variables.get("SHOAL_TASK_INSTANCE_ID", ""), remote
    return None
