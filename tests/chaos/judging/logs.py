"""Logs as Shoal shows them, against what the tasks say they printed."""

import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from tests.chaos.judging.evidence import Attempt, Evidence, Task
from tests.chaos.judging.verdict import Kind, Offence
from tests.chaos.workload.dags import PROGRAM
from tests.chaos.workload.ledger import Run
from tests.chaos.workload.task import log_text

# Returns the whole log of a task instance. Raises LogMissing.
LogReader = Callable[[int], bytes]
# Returns the copy of a log of a task instance, given the whole log. Raises LogMissing.
CopyReader = Callable[[int, bytes], bytes]
_PAUSE_S = 0.5


class LogMissing(Exception):
    """There is no such log."""


class ApiLogs:
    """Reads logs through the API; the worker that ran the attempt must be up."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.Client(
            base_url=f"{url.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=30.0,
            trust_env=False,
        )

    def __call__(self, task_instance_id: int) -> bytes:
        try:
            answer = self._http.get(f"/task-instances/{task_instance_id}/log/raw")
        except httpx.TransportError as error:
            raise LogMissing(f"the API does not answer: {error!r}") from error
        if not answer.is_success:
            raise LogMissing(f"{answer.status_code} {answer.text}")
        return answer.content

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


class ArchivedLogs:
    """Reads logs in the folder of the archive, and waits ``patience_s`` in all for right ones.

    A log that was copied while its task began is copied again when the task has ended.
    """

    def __init__(self, folder: Path, patience_s: float) -> None:
        self._folder, self._until_s = folder, time.monotonic() + patience_s
        self._found: dict[int, Path] = {}

    def __call__(self, task_instance_id: int, log: bytes) -> bytes:
        copy: bytes | None = None
        while copy != log:
            if path := self._found.get(task_instance_id) or self._look(task_instance_id):
                copy = path.read_bytes()
            if copy == log or time.monotonic() > self._until_s:
                break
            time.sleep(_PAUSE_S)
        if copy is None:
            raise LogMissing("it is not in the archive")
        return copy

    def _look(self, task_instance_id: int) -> Path | None:
        self._found = {int(path.stem): path for path in self._folder.rglob("*.log")}
        return self._found.get(task_instance_id)


def judge(
    evidence: Evidence, read: LogReader, most: int, archived: CopyReader | None = None
) -> Iterator[Offence]:
    """Yield the logs that are not what was printed, among ``most`` from the whole time.

    ``archived`` None: the archive is not looked at.
    """
    ran = [attempt for attempt in evidence.attempts if attempt.id in evidence.runs_of]
    for attempt in ran[:: -(-len(ran) // most) or 1]:
        try:
            log = read(attempt.id)
        except LogMissing as error:
            if not _gave_way(evidence, attempt, error):
                yield _of(attempt, "log is there", f"not readable: {error}")
            continue
        yield from _compare(evidence, attempt, log)
        if archived is not None:
            yield from _compare_archived(attempt, log, archived)


def _compare_archived(attempt: Attempt, log: bytes, archived: CopyReader) -> Iterator[Offence]:
    try:
        copy = archived(attempt.id, log)
    except LogMissing as error:
        yield _of(attempt, "log in the archive", f"not readable: {error}")
        return
    if copy != log:
        text = f"{len(copy)} bytes, but the worker has {len(log)} others"
        yield _of(attempt, "log in the archive", text)


def _gave_way(evidence: Evidence, attempt: Attempt, error: LogMissing) -> bool:
    """Say whether the log was deleted because a fault had filled its worker's disk."""
    if attempt.worker is None or "disk was nearly full" not in str(error):
        return False
    # A worker's id is its name, with what tells its lives apart.
    filled = [f"{fault.target}-" for fault in evidence.faults if fault.spoils_disk]
    return attempt.worker.startswith(tuple(filled))


def _compare(evidence: Evidence, attempt: Attempt, log: bytes) -> Iterator[Offence]:
    run = evidence.runs_of[attempt.id][-1]
    if run.start.program:  # a line says which version it is
        log = log.removeprefix(f"shoal: resources: {PROGRAM}@{run.start.program}\n".encode())
    log = _printed(log, evidence.task_of(attempt))
    if run.end is not None:
        if len(log) != run.end.size or hashlib.sha256(log).hexdigest() != run.end.sha256:
            text = f"{len(log)} bytes, but {run.end.size} others were printed"
            yield _of(attempt, "log of a complete run", text)
    elif not _expected(evidence, attempt, run).startswith(log):
        yield _of(attempt, "log of a killed run", f"{len(log)} bytes that it does not print")


def _printed(log: bytes, task: Task | None) -> bytes:
    """Return a log without the line about what was handed over, or why not."""
    if task is not None and task.hands_over:
        begun = log[:-1].rfind(b"\n") + 1
        if log[begun:].startswith(b"shoal: "):
            return log[:begun]
    return log


def _expected(evidence: Evidence, attempt: Attempt, run: Run) -> bytes:
    instance = evidence.instances[attempt.instance]
    lines = instance.tasks[attempt.task].lines
    return log_text(run.start.instance, run.start.task, run.start.attempt, lines)


def _of(attempt: Attempt, rule: str, text: str) -> Offence:
    return Offence(Kind.LOG, rule, text, attempt.instance, attempt.task, attempt.number)
