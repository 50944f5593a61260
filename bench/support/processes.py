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
    ("task-watchdog", LAUNCHER),
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


@dataclass(frozen=True)
class Memory:
    """What the processes of one kind occupy together, in bytes."""

    private: int  # pages of no file and no shared segment: heaps and stacks
    shared: int  # pages of files and shared segments, divided among all who map them
    bound: int  # the size of those files and segments: more ``shared`` cannot become


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


def memory(root: int) -> Mapping[str, Memory]:
    """Return the memory of everything below ``root``, by kind.

    Private and shared pages are told apart, for shared ones count from the moment at which each
    is touched: a database's cache fills for hours, and is as large as its settings say.
    """
    private: dict[str, int] = defaultdict(int)
    shared: dict[str, int] = defaultdict(int)
    mapped: dict[str, dict[str, int]] = defaultdict(dict)
    for process in below(root):
        pages = _pages(process.pid)
        private[process.kind] += pages.get("Pss_Anon", 0)
        shared[process.kind] += pages.get("Pss", 0) - pages.get("Pss_Anon", 0)
        sizes = mapped[process.kind]
        for file, size in _mapped(process.pid).items():
            sizes[file] = max(sizes.get(file, 0), size)
    return {
        kind: Memory(private[kind], shared[kind], sum(sizes.values()))
        for kind, sizes in mapped.items()
    }


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
    return _pages(pid).get("Pss", 0)


def _pages(pid: int) -> Mapping[str, int]:
    """Return the kernel's summary in bytes by name; empty if the process has gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    fields = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(number) * 1024 for name, number, _ in fields}


def _mapped(pid: int) -> Mapping[str, int]:
    """Return how much of each file or shared segment is mapped, in bytes by device and inode."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    ends: dict[str, int] = {}
    for line in lines.splitlines():
        addresses, _, offset, device, inode = line.split(maxsplit=5)[:5]
        if inode != "0":
            first, _, last = addresses.partition("-")
            end = int(offset, 16) + int(last, 16) - int(first, 16)
            file = f"{device} {inode}"
            ends[file] = max(ends.get(file, 0), end)
    return ends
