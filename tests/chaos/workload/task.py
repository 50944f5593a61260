"""One task of the fault suite. It writes down what really happened.

Run as ``python -I -S task.py FOLDER BEHAVIOUR``: a file of its own that imports nothing of Shoal,
so that a start costs some 25 ms. Rows are appended to ``FOLDER/<instance>-<task>.jsonl``, one
``write`` each, and synced. The same file is locked for as long as a process of the task lives: its
children inherit the lock, so a second run that meets any of them says DUPLICATE.

``BEHAVIOUR`` is JSON: ``s`` seconds to run; ``fail`` attempts that end with exit code 7 (-1: all);
``deaf`` ignores TERM; ``children`` what to leave behind (fork, setsid, double); ``lines`` of log;
``leaves`` the name of a file to write.
"""

import fcntl
import hashlib
import json
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FAILED = 7  # the exit code of a failure that was asked for
NO_LOG = 74  # the log, or a file, could not be written (EX_IOERR)
CHILD_LIFE_S = 600  # what nobody kills would be found by every check before it ends


def log_text(instance: int, task: str, attempt: int, lines: int) -> bytes:
    """Return everything that an attempt prints: the same for the task and for its judge."""
    return b"".join(
        f"{instance}/{task}/{attempt} line {n} {n * 2654435761 % 2**32:08x} äöü\n".encode()
        for n in range(lines)
    )


def left_text(instance: int, task: str, attempt: int) -> bytes:
    """Return what an attempt writes into the file that it leaves."""
    return f"{instance}/{task}/{attempt}\n".encode()


class Ledger:
    """The file of one task of one instance, locked while anything of the task lives."""

    def __init__(self, folder: str, environment: "Mapping[str, str]") -> None:
        self.instance = int(environment["SHOAL_WORKFLOW_INSTANCE_ID"])
        self.task = environment["SHOAL_TASK"]
        self.attempt = int(environment["SHOAL_ATTEMPT"])
        self._who = {
            "instance": self.instance,
            "task": self.task,
            "attempt": self.attempt,
            "task_instance_id": int(environment["SHOAL_TASK_INSTANCE_ID"]),
            "epoch": int(environment["SHOAL_EPOCH"]),
        }
        name = f"{self.instance}-{self.task}.jsonl"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._file = os.open(os.path.join(folder, name), flags, 0o600)

    def lock(self) -> bool:
        """Say whether this is the only run. Never released: the end of all processes does it."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def write(self, kind: str, **fields: object) -> None:
        """Append a row. It starts on a new line, whatever a killed writer has left before it."""
        row = {
            "kind": kind,
            **self._who,
            "pid": os.getpid(),
            "ticks": start_ticks("self"),
            "boot_ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            "wall_ns": time.time_ns(),
            **fields,
        }
        os.write(self._file, b"\n" + json.dumps(row).encode() + b"\n")
        os.fsync(self._file)


def start_ticks(pid: "int | str") -> int:
    """Return when a process started, in clock ticks: with the pid it names it for ever."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


class Output:
    """Standard output; remembers what really got through."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self.size = 0
        self.broken = False

    def print(self, text: bytes) -> None:
        while text and not self.broken:
            try:
                written = os.write(1, text)
            except OSError:  # the disk is full
                self.broken = True
                return
            self._digest.update(text[:written])
            self.size += written
            text = text[written:]

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def leave_file(ledger: Ledger, name: "str | None") -> bool:
    """Write the file that is to be left; say whether it is complete."""
    if name is None:
        return True
    try:
        with open(name, "wb") as file:
            file.write(left_text(ledger.instance, ledger.task, ledger.attempt))
    except OSError:  # the disk is full
        return False
    return True


def leave_child(ledger: Ledger, kind: str) -> None:
    """Start a process that outlives us if nobody ends it."""
    if os.fork() != 0:
        return
    try:
        if kind != "fork":
            os.setsid()
        if kind == "double" and os.fork() != 0:
            os._exit(0)
        ledger.write("CHILD")
        time.sleep(CHILD_LIFE_S)
    finally:
        os._exit(0)


def main(arguments: "Sequence[str]") -> int:
    folder, behaviour = arguments[0], json.loads(arguments[1])
    if behaviour.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ledger, output = Ledger(folder, os.environ), Output()
    begun = time.monotonic()
    if not ledger.lock():
        ledger.write("DUPLICATE")
    ledger.write("START", cwd=os.getcwd(), program=int(os.environ.get("CHAOS_PROGRAM", "0")))
    text = log_text(ledger.instance, ledger.task, ledger.attempt, behaviour.get("lines", 0))
    output.print(text[: len(text) // 2])
    for kind in behaviour.get("children", ()):
        leave_child(ledger, kind)
    time.sleep(max(0.0, behaviour.get("s", 0) - (time.monotonic() - begun)))
    output.print(text[len(text) // 2 :])
    fail = behaviour.get("fail", ())
    wanted = FAILED if ledger.attempt in fail or -1 in fail else 0
    is_short = output.broken or not leave_file(ledger, behaviour.get("leaves"))
    status = NO_LOG if is_short else wanted
    ledger.write("END", exit=status, sha256=output.sha256, size=output.size)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
