"""Exit records on stable storage. Storing one waits for the disk, so a shim does it."""

from __future__ import annotations

import json
import os
import stat
from collections import namedtuple

from shoal.worker.supervisor.causes import EndCause
from shoal.worker.supervisor.shim.journal import LONGEST, sync_folder
from shoal.worker.supervisor.shim.masks import Masker
from shoal.worker.supervisor.shim.outputs import BadOutput, collect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from shoal.worker.supervisor.shim.journal import Journal

SUCCEEDED, FAILED, KILLED = "SUCCEEDED", "FAILED", "KILLED"

#: How an attempt ended. ``started`` is in seconds since the Unix epoch, ``status`` the wait status
#: of its main process, ``kill_cause`` an EndCause, None if it was not killed, and ``notes`` are
#: sentences for the reason of the record.
End = namedtuple("End", "started took_s status max_rss_kb cpu_s kill_cause kill_reason notes")


def masks_of(launch: Mapping[str, object]) -> list[str]:
    """Return what log and outputs of an attempt must not show."""
    masks = launch.get("masks", [])
    assert isinstance(masks, list)
    return masks


def record_of(launch: Mapping[str, object], end: End) -> dict[str, object]:
    """Return what is stored and reported. Instants are seconds since the Unix epoch.

    ``max_rss_kb`` is never below the size of a shim: the kernel counts the process from its
    beginning, before it became the program.
    """
    signal_number = end.status & 0x7F
    exit_code = None if signal_number else end.status >> 8
    return {
        "id": launch["id"],
        "outcome": _outcome(end, exit_code),
        "cause": end.kill_cause or (EndCause.SIGNALLED if signal_number else EndCause.EXITED),
        "exit_code": exit_code,
        "signal": signal_number or None,
        "reason": "; ".join([_reason(end, exit_code, signal_number), *end.notes]),
        "timed_out": end.kill_cause == EndCause.TIMEOUT,
        "started_at": end.started,
        "finished_at": end.started + end.took_s,
        "max_rss_kb": end.max_rss_kb,
        "cpu_s": round(end.cpu_s, 6),
        "context": launch.get("context"),
    }


def _outcome(end: End, exit_code: int | None) -> str:
    if end.kill_cause == EndCause.TIMEOUT:
        return FAILED
    if end.kill_cause is not None:
        return KILLED
    return SUCCEEDED if exit_code == 0 else FAILED


def _reason(end: End, exit_code: int | None, signal_number: int) -> str:
    if end.kill_cause is not None:
        return str(end.kill_reason)
    if signal_number:
        return f"ended by signal {signal_number}"
    return f"exit code {exit_code}"


def store(
    launch: Mapping[str, object],
    end: End,
    log: int | None = None,
    journal: Journal | None = None,
    *,
    pid: int = 0,
    again: bool = False,
) -> bytes:
    """Store the end of the attempt that was launched so. Returns the message for the agent.

    ``log`` is a descriptor of its log, if the caller has one. The record goes into ``journal``, or
    into a file of its own if there is none or it does not fit. The log is synced before the record,
    and the folder of the record after it. ``again``: another shim may have stored it as well, so
    its place in our journal is not the only one, and not reported.
    """
    record = record_of(launch, end)
    log_path, path = str(launch["log_path"]), str(launch["record_path"])
    record["log_bytes"] = 0
    log_error = _attempted(log_path, _sync_log, log_path, log, record)
    outputs = _take_outputs(launch, record)
    folder = os.path.dirname(path)
    stored = {**record, "outputs": outputs}
    content = json.dumps(stored).encode()
    place, error = _append(journal, folder, content), None
    if place is None:
        error = _attempted(path, write_record, path, stored)
        error = error or _attempted(folder, sync_folder, folder)
    elif again:
        place = None
    if outputs or error or log_error:
        return exited(record, error, log_error, pid, place)
    return _message(content, True, pid, place)


def _append(journal: Journal | None, folder: str, content: bytes) -> tuple[str, int] | None:
    """Return where in the journal the record is stored; None if it is not."""
    if journal is None or len(content) > LONGEST:
        return None
    try:
        return journal.append(folder, content)
    except OSError:
        return None


def exited(
    record: dict[str, object],
    error: str | None,
    log_error: str | None = None,
    pid: int = 0,
    place: tuple[str, int] | None = None,
) -> bytes:
    """Return the message about an end. ``error`` says why its record is not stored."""
    if log_error:
        record["reason"] = f"{record['reason']}; the log may be incomplete: {log_error}"
    if error:
        record["reason"] = f"{record['reason']}; cannot store the exit record: {error}"
    return _message(json.dumps(record).encode(), error is None, pid, place)


def _message(record: bytes, durable: bool, pid: int, place: tuple[str, int] | None) -> bytes:
    """Put the JSON of a record, which is written already, into the JSON of a message."""
    known = b"" if place is None else b', "place": ["%b", %d]' % (place[0].encode(), place[1])
    stored = b"true" if durable else b"false"
    form = b'{"type": "exited", "durable": %b, "pid": %d%b, "record": %b}'
    return form % (stored, pid, known, record)


def _attempted(path: str, step: Callable[..., None], *arguments: object) -> str | None:
    try:
        step(*arguments)
    except OSError as error:
        return f"{error.filename or path}: {error.strerror or error}"
    return None


def _take_outputs(launch: Mapping[str, object], record: dict[str, object]) -> dict[str, str]:
    """Return the outputs of an attempt that has ended well; unusable ones make it fail."""
    path, outputs = launch.get("output_path"), dict[str, str]()
    if path is not None and record["outcome"] == SUCCEEDED:
        masks, refused = masks_of(launch), str(launch.get("refused_outputs", ""))
        try:
            has_values = launch.get("outputs_from_log") and record["log_bytes"]
            log = str(launch["log_path"]) if has_values else None
            outputs = collect(str(path), log, refused, masks)
        except (BadOutput, OSError) as error:
            reason = Masker(masks).mask(f"its outputs cannot be used: {error}")
            record.update(outcome=FAILED, reason=reason)
    record["output_count"] = len(outputs)
    return outputs


def _sync_log(path: str, log: int | None, record: dict[str, object]) -> None:
    if log is not None:
        _sync(log, record)
        return
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:  # the task removed its own log
        return
    try:
        _sync(fd, record)
    finally:
        os.close(fd)


def _sync(log: int, record: dict[str, object]) -> None:
    found = os.fstat(log)
    if stat.S_ISREG(found.st_mode) and not (found.st_size and found.st_nlink):
        return  # of an empty log there is nothing to lose but its name; or the task removed it
    record["log_bytes"] = found.st_size
    os.fdatasync(log)


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
