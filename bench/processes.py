"""The processes of a cluster: how much processor time and memory each kind takes."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
LAUNCHER = "launcher and tasks"
OTHER = "other"
BENCH = "bench"  # the calling process
#: Kinds by a part of the command line; the first that matches counts.
_KINDS = (
    ("roles master", "master"),
    ("roles worker", "worker agent"),
    ("roles api", "api"),
    ("launcher", LAUNCHER),
    ("guardian", LAUNCHER),
    ("sentinel", LAUNCHER),
    ("shim", LAUNCHER),
    ("zookeeper", "ZooKeeper"),
    ("postgres", "PostgreSQL"),
)


@dataclass(frozen=True)
class Process:
    """One process of a cluster."""

    pid: int
    parent: int
    kind: str
    name: str
    cpu_s: float  # its own and that of all children it has waited for


@contextmanager
def metered() -> Iterator[dict[str, float]]:
    """Fill the dictionary with the processor time of the block, in seconds by kind of process.

    What is below this process, and ``bench``, itself. It is empty until the block has ended.
    """
    used: dict[str, float] = {}
    before, own = processor_s(os.getpid()), time.process_time()
    yield used
    used[BENCH] = time.process_time() - own
    after = processor_s(os.getpid())
    used.update({kind: spent - before.get(kind, 0.0) for kind, spent in after.items()})


def processor_s(root: int) -> Mapping[str, float]:
    """Return the seconds of processor time used so far below ``root``, by kind of process.

    Exact to a clock tick (10 ms) for each process. A child that has ended counts for its parent.
    """
    used: dict[str, float] = defaultdict(float)
    for process in below(root):
        used[process.kind] += process.cpu_s
    return dict(used)


def proportional_bytes(root: int) -> Mapping[str, int]:
    """Return the memory (PSS: shared pages divided among their users) below ``root``, by kind."""
    used: dict[str, int] = defaultdict(int)
    for process in below(root):
        used[process.kind] += _pss(process.pid)
    return dict(used)


def below(root: int) -> list[Process]:
    """Return all descendants of ``root``."""
    found = [p for name in os.listdir("/proc") if name.isdigit() and (p := _read(int(name)))]
    family, grew = {root}, True
    while grew:
        more = {p.pid for p in found if p.parent in family} - family
        family |= more
        grew = bool(more)
    return [process for process in found if process.pid in family and process.pid != root]


def _read(pid: int) -> Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        command = (
            Path(f"/proc/{pid}/cmdline")
            .read_bytes()
            .replace(b"\0", b" ")
            .decode("utf-8", "replace")
        )
    except OSError:
        return None
    name, _, rest = stat.partition(" (")[2].rpartition(") ")
    fields = rest.split()
    ticks = sum(int(field) for field in fields[11:15])  # utime, stime, cutime, cstime
    return Process(pid, int(fields[1]), _kind(f"{command} {name}"), name, ticks * _TICK_S)


def _kind(text: str) -> str:
    return next((kind for part, kind in _KINDS if part in text), OTHER)


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
