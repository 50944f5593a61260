"""Exit records on stable storage, without the launcher ever waiting for a disk.

A slow disk must not keep the launcher from enforcing a lease, so a short-lived forked child writes
and syncs. Everything that ends while one child is at work goes to the next child together: one
start and, on most file systems, one journal commit for many records.
"""

from __future__ import annotations

import json
import os

from shoal.worker.launcher_attempt import FAILED, SUCCEEDED
from shoal.worker.launcher_masking import Masker
from shoal.worker.outputs import BadOutput, collect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from shoal.worker.launcher_attempt import Attempt

# What of a record is found out while it is stored.
_FOUND_OUT = ("log_bytes", "output_count", "outcome", "reason")


class Job:
    """The record of one attempt, to be stored, and what became of it.

    ``error`` says why the record is not stored; ``log_error`` why the log may be incomplete.
    """

    def __init__(self, attempt: Attempt) -> None:
        self.attempt, self.id = attempt, attempt.id
        self.record = attempt.record()
        self.record_path, self.log_path = attempt.record_path, attempt.log_path
        self.error: str | None = None
        self.log_error: str | None = None

    @property
    def news(self) -> list[object]:
        """What storing it has found out, for ``judge`` in another process."""
        found = [self.record.get(name) for name in _FOUND_OUT]
        return [self.error, self.log_error, *found]

    def judge(self, news: list[Any]) -> None:
        """Note what became of record, log and outputs."""
        self.error, self.log_error, *found = news
        self.record.update(zip(_FOUND_OUT, found, strict=True))


class RecordWriter:
    """Stores records in batches, one batch at a time."""

    def __init__(self) -> None:
        self._waiting: list[Job] = []
        self._at_work: list[Job] = []
        self._results = bytearray()
        self._pipe: int | None = None

    def add(self, job: Job) -> None:
        self._waiting.append(job)

    def start(self) -> tuple[int, int] | None:
        """Begin the next batch if there is one and none is at work.

        Returns the helper's number and the descriptor that becomes readable at the batch's end,
        None if no batch was begun. Raises
        OSError when no process can be started; then ``store_here`` takes the jobs.
        """
        if self._pipe is not None or not self._waiting:
            return None
        read_end, write_end = os.pipe()
        os.set_blocking(read_end, False)
        try:
            pid = os.fork()
        except OSError:
            os.close(read_end)
            os.close(write_end)
            raise
        if pid == 0:
            _work(self._waiting, write_end)
        os.close(write_end)
        self._at_work, self._waiting = self._waiting, []
        self._pipe = read_end
        return pid, read_end

    def store_here(self) -> list[Job]:
        """Store what waits in the calling process, for a machine that has no room for another."""
        done, self._waiting = self._waiting, []
        _store(done)
        return done

    def finished(self) -> list[Job]:
        """Return the batch that has just ended, nothing while it is still at work."""
        assert self._pipe is not None
        while True:
            try:
                chunk = os.read(self._pipe, 65536)
            except BlockingIOError:
                return []
            if not chunk:
                break
            self._results += chunk
        os.close(self._pipe)
        done, self._at_work, self._pipe = self._at_work, [], None
        lines = bytes(self._results).splitlines()
        self._results.clear()
        for index, job in enumerate(done):
            if index < len(lines):
                job.judge(json.loads(lines[index]))
            else:
                job.error = "the process that stores exit records was killed"
        return done


def _work(jobs: list[Job], write_end: int) -> None:
    """Store all jobs and send one line per job. Never returns."""
    try:
        _store(jobs)
        report = "".join(json.dumps(job.news) + "\n" for job in jobs).encode()
        while report:
            report = report[os.write(write_end, report) :]
    finally:
        os._exit(0)


def _store(jobs: list[Job]) -> None:
    for job in jobs:
        job.record["log_bytes"] = 0
        job.log_error = _attempted(job.log_path, _sync_log, job)
        outputs = _take_outputs(job)
        whole = {**job.record, "outputs": outputs}
        job.error = _attempted(job.record_path, write_record, job.record_path, whole)
    for folder in {os.path.dirname(job.record_path) for job in jobs}:
        if error := _attempted(folder, sync_folder, folder):
            for job in jobs:
                if os.path.dirname(job.record_path) == folder:
                    job.error = job.error or error


def _attempted(path: str, step: Callable[..., None], *arguments: object) -> str | None:
    try:
        step(*arguments)
    except OSError as error:
        return f"{error.filename or path}: {error.strerror or error}"
    return None


def _take_outputs(job: Job) -> dict[str, str]:
    """Return the outputs of an attempt that has ended well; unusable ones make it fail."""
    attempt, outputs = job.attempt, dict[str, str]()
    path = attempt.output_path
    if path is not None and job.record["outcome"] == SUCCEEDED:
        try:
            outputs = collect(str(path), job.log_path, attempt.refused_outputs, attempt.masks)
        except (BadOutput, OSError) as error:
            reason = Masker(attempt.masks).mask(f"its outputs cannot be used: {error}")
            job.record.update(outcome=FAILED, reason=reason)
    job.record["output_count"] = len(outputs)
    return outputs


def _sync_log(job: Job) -> None:
    try:
        fd = os.open(job.log_path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:  # the task removed its own log
        return
    try:
        job.record["log_bytes"] = os.fstat(fd).st_size
        os.fdatasync(fd)
    finally:
        os.close(fd)


def write_record(path: str, record: Mapping[str, object]) -> None:
    """Write and sync ``record`` as JSON, replacing ``path`` in one step.

    The entry in the folder is durable only after ``sync_folder``. Raises OSError.
    """
    content = json.dumps(record).encode()
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(temporary, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        fd = os.open(temporary, flags, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(fd)
        os.rename(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
