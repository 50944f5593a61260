"""Finds what is left although every instance has ended: processes, queue entries, claims."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from tests.chaos.judging.verdict import Kind as Crime
from tests.chaos.judging.verdict import Offence
from tests.chaos.workload.dags import MARKER_VARIABLE
from tests.chaos.workload.ledger import Kind, Row
from tests.chaos.workload.task import start_ticks

PATIENCE_S = 60.0  # claims go when the last results are committed, stale entries with a sweep
_CONNECT_S = 30.0
_LOOK_S = 0.5
# A queue entry is /queue/<group>/<bucket>/<bucket>/<entry>, a claim /claims/<bucket>/<claim>.
_TREES = (("/queue", 4, "queue entry"), ("/claims", 2, "claim"))
_TASK = b"SHOAL_TASK="
_INSTANCE = b"SHOAL_WORKFLOW_INSTANCE_ID="


def survivors(marker: str, rows: Sequence[Row]) -> Iterator[Offence]:
    """Yield processes with our marker in their environment, and those named in the ledger."""
    marked = set()
    for pid, environment in _environments():
        if f"{MARKER_VARIABLE}={marker}".encode() in environment:
            marked.add(pid)
            text = f"process {pid} carries our marker: {_command_line(pid)}"
            yield Offence(
                Crime.LEAKED,
                "marked process",
                text,
                int(_value(environment, _INSTANCE) or 0),
                _value(environment, _TASK),
            )
    for row in rows:
        if row.kind in (Kind.START, Kind.CHILD) and row.pid not in marked and _lives(row):
            text = f"process {row.pid} ({row.kind}) is alive: {_command_line(row.pid)}"
            yield Offence(
                Crime.LEAKED, "process of the ledger", text, row.instance, row.task, row.attempt
            )


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                yield int(entry.name), (entry / "environ").read_bytes().split(b"\0")
            except OSError:  # it has just ended, or is not ours to look at
                continue


def _value(environment: Sequence[bytes], prefix: bytes) -> str | None:
    return next((v[len(prefix) :].decode() for v in environment if v.startswith(prefix)), None)


def _lives(row: Row) -> bool:
    try:
        with open(f"/proc/{row.pid}/stat", "rb") as file:
            zombie = file.read().rpartition(b")")[2].split()[0] in (b"Z", b"X")
        return not zombie and start_ticks(row.pid) == row.ticks
    except OSError:
        return False


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:200]
    except OSError:
        return "(it has ended meanwhile)"


def entries(zookeeper: str, patience_s: float = PATIENCE_S) -> list[Offence]:
    """Return an offence for each queue entry and claim that is left after ``patience_s``."""
    client = KazooClient(hosts=zookeeper)
    client.start(timeout=_CONNECT_S)
    try:
        deadline = time.monotonic() + patience_s
        while (left := list(_left(client))) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return left
    finally:
        client.stop()
        client.close()


def _left(client: KazooClient) -> Iterator[Offence]:
    for root, depth, what in _TREES:
        for path in _below(client, root, depth):
            yield Offence(Crime.LEAKED, what, f"{path} is left although every instance has ended")


def _below(client: KazooClient, path: str, depth: int) -> Iterator[str]:
    """Yield the paths exactly ``depth`` levels below ``path``."""
    if depth == 0:
        yield path
        return
    try:
        names = sorted(client.get_children(path))
    except NoNodeError:  # a bucket that has just been removed
        return
    for name in names:
        yield from _below(client, f"{path}/{name}", depth - 1)
