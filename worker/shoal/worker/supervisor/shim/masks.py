"""Secrets never reach the disk: a filter between an attempt and its log.

Attempts that use secrets write into a pipe instead of their log file. At its other end is a small
process of the launcher's own, which replaces every secret by ``***`` and writes the rest on at
once; only what could be the beginning of a secret waits for what follows. It is neither the
attempt's child nor in its session, so ending the attempt cannot touch it: it reads what the dead
have left in the pipe, is then asked to finish, and only after that the end is recorded. All others
write straight into their log, as nothing stands in their way.
"""

from __future__ import annotations

import os
import select
import signal

from shoal.worker.supervisor.shim.descriptors import two_pipes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MASK = b"***"
_CHUNK = 1 << 16  # bytes
# What may still be in a pipe; a process that writes on after the attempt's end is not waited for.
_REST = 1 << 20
_DATA, _STOP = 0, 1  # descriptors of the filter


class Masker:
    """Replaces secrets in a stream of bytes, wherever it is cut."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # The longest first: of several that begin at the same place it is taken.
        texts = {text.encode("utf-8", "surrogatepass") for text in secrets}
        self._secrets = sorted((t for t in texts if t), key=lambda text: (-len(text), text))
        self._first = {text[0] for text in self._secrets}
        self._reach = len(self._secrets[0]) - 1 if self._secrets else 0
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take more of the stream; return what is certain of it by now."""
        text = self._held + data
        done, keep_from = bytearray(), self._possible_start(text, 0)
        position = 0
        for start, end in self._found(text):
            if start >= keep_from:
                break
            done += text[position:start] + MASK
            position = end
            if position > keep_from:
                keep_from = self._possible_start(text, position)
        done += text[position:keep_from]
        self._held = text[keep_from:]
        return bytes(done)

    def flush(self) -> bytes:
        """The stream is over: return the rest of it."""
        held, self._held = self._held, b""
        return self._masked(held)

    def mask(self, text: str) -> str:
        """Return a whole text without the secrets."""
        masked = self._masked(text.encode("utf-8", "surrogatepass"))
        return masked.decode("utf-8", "surrogatepass")

    def _masked(self, text: bytes) -> bytes:
        done, position = bytearray(), 0
        for start, end in self._found(text):
            done += text[position:start] + MASK
            position = end
        return bytes(done + text[position:])

    def _found(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield where the secrets stand, from left to right; of several at one place the longest.

        A pattern of them all would be slow to compile for keys of some kilobytes.
        """
        ahead = {secret: text.find(secret) for secret in self._secrets}
        while ahead := {secret: start for secret, start in ahead.items() if start >= 0}:
            start = min(ahead.values())
            longest = next(secret for secret, found in ahead.items() if found == start)
            end = start + len(longest)
            yield start, end
            for secret, found in ahead.items():
                if found < end:
                    ahead[secret] = text.find(secret, end)

    def _possible_start(self, text: bytes, begin: int) -> int:
        """Return from where on ``text`` could be the first part of a secret; else its length."""
        for start in range(max(begin, len(text) - self._reach), len(text)):
            if text[start] in self._first:
                rest = text[start:]
                if any(len(s) > len(rest) and s.startswith(rest) for s in self._secrets):
                    return start
        return len(text)


class Filter:
    """The filter of one attempt, as the launcher sees it."""

    def __init__(self, pid: int, write_end: int, stop_end: int) -> None:
        self.pid = pid
        #: Where the attempt writes; closed in the launcher once the attempt has it.
        self.write_end = write_end
        #: Its wait status, None while it is alive.
        self.status: int | None = None
        self._stop_end = stop_end

    def ended(self, status: int) -> None:
        """It has ended; any status but 0 means before its time."""
        self.status = status

    def attach(self) -> None:
        """The attempt has its copy of the pipe."""
        os.close(self.write_end)

    def finish(self) -> None:
        """Nothing of the attempt is alive: write what is left, and end."""
        try:
            os.write(self._stop_end, b"!")
        except BrokenPipeError:
            pass  # it has seen the end by itself
        finally:
            os.close(self._stop_end)


def start_filter(
    log_path: str, secrets: Iterable[str], open_log: Callable[[str], int], niceness: int
) -> Filter:
    """Start the filter in front of a log. Raises OSError if no process can be started.

    The attempt's own child checks and reports whether the log can be opened.
    """
    read_end, write_end, stop_read, stop_write = two_pipes()
    try:
        pid = os.fork()
    except OSError:
        for fd in (read_end, write_end, stop_read, stop_write):
            os.close(fd)
        raise
    if pid == 0:
        try:
            _take_descriptors(read_end, stop_read)
            os.setpriority(os.PRIO_PROCESS, 0, niceness)
            _copy(open_log(log_path), Masker(secrets))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(read_end)
    os.close(stop_read)
    return Filter(pid, write_end, stop_write)


def _take_descriptors(data: int, stop: int) -> None:
    """Keep these two and nothing else of the launcher's: its sockets must close when it dies."""
    signal.set_wakeup_fd(-1)
    data, stop = os.dup(data), os.dup(stop)
    os.dup2(data, _DATA)
    os.dup2(stop, _STOP)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.set_blocking(_DATA, False)


def _copy(log: int, masker: Masker) -> None:
    poll = select.poll()
    for fd in (_DATA, _STOP):
        poll.register(fd, select.POLLIN)
    budget: int | None = None  # bytes to be read after the stop
    while budget is None or budget > 0:
        ready = {fd for fd, _ in poll.poll(None if budget is None else 0)}
        if _STOP in ready:
            poll.unregister(_STOP)
            budget = _REST
        elif _DATA not in ready:
            break
        if _DATA in ready:
            chunk = os.read(_DATA, _CHUNK)
            if not chunk:
                break
            budget = None if budget is None else budget - len(chunk)
            _write(log, masker.feed(chunk))
    _write(log, masker.flush())


def _write(log: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(log, data) :]
        except OSError:
            return  # a full disk: as for any attempt, this part of the log is lost
