"""What the agent asks the launcher to run, and how it ended."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from shoal.worker.supervisor.causes import EndCause

ATTEMPT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


class ProcessOutcome(StrEnum):
    SUCCEEDED = "SUCCEEDED"  # exit code 0
    FAILED = "FAILED"  # another exit code, a signal, or the timeout
    KILLED = "KILLED"  # by request, because the lease ran out, or because the agent ended


@dataclass(frozen=True)
class LaunchRequest:
    """What to run. Paths are absolute; ``id`` is a slug, unique among the running attempts.

    The program gets exactly ``env``, nothing is inherited, and is looked up in its ``PATH``. Both
    output streams are appended to ``log_path``; missing folders of ``log_path`` and
    ``record_path`` are made, ``cwd`` must exist. After ``timeout_s`` seconds all processes get
    TERM and, ``timeout_grace_s`` later, KILL. ``context`` is copied into the exit record: put
    there what a later agent needs to report the result, plain JSON values. ``masks`` are texts
    that no part of the log, nor any output, may hold. With ``output_path`` an attempt that ends
    well has outputs, see ``outputs.py``; ``refused_outputs`` is a pattern of names none may have,
    ``outputs_from_log`` says whether lines of the log set some as well.
    """

    id: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    log_path: Path
    record_path: Path
    stdin_path: Path | None = None  # an empty standard input if None
    stdin: str | None = field(default=None, repr=False)  # what is read there, instead of a file
    timeout_s: float | None = None
    timeout_grace_s: float = 0.0
    context: Mapping[str, Any] = field(default_factory=dict)
    output_path: Path | None = None
    refused_outputs: str = ""
    outputs_from_log: bool = False
    journaled: bool = True  # its record may be a line of a journal instead of a file
    masks: Sequence[str] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if ATTEMPT_ID.fullmatch(self.id) is None:
            raise ValueError(f"attempt id {self.id!r} is not a slug ({ATTEMPT_ID.pattern})")
        if not self.argv or isinstance(self.argv, str):
            raise ValueError(f"attempt {self.id}: argv must be a list with at least the program")
        paths = (self.cwd, self.log_path, self.record_path, self.stdin_path, self.output_path)
        for path in paths:
            if path is not None and not path.is_absolute():
                raise ValueError(f"attempt {self.id}: {path} must be an absolute path")
        if "\0" in "".join((*self.argv, *self.env.keys(), *self.env.values())):
            raise ValueError(f"attempt {self.id}: arguments and environment cannot contain NUL")
        if "" in self.env or "=" in "".join(self.env):
            raise ValueError(f"attempt {self.id}: environment names cannot be empty or contain '='")
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise ValueError(f"attempt {self.id}: timeout_s must be positive, or None for no limit")

    def message(self) -> dict[str, Any]:
        """Return the ``launch`` message."""
        return {
            "type": "launch",
            "id": self.id,
            "argv": list(self.argv),
            "env": dict(self.env),
            "cwd": str(self.cwd),
            "log_path": str(self.log_path),
            "record_path": str(self.record_path),
            "stdin_path": None if self.stdin_path is None else str(self.stdin_path),
            "stdin": self.stdin,
            "timeout_s": self.timeout_s,
            "timeout_grace_s": self.timeout_grace_s,
            "context": dict(self.context),
            "output_path": None if self.output_path is None else str(self.output_path),
            "refused_outputs": self.refused_outputs,
            "outputs_from_log": self.outputs_from_log,
            "journaled": self.journaled,
            "masks": list(self.masks),
        }


@dataclass(frozen=True)
class ExitRecord:
    """How an attempt ended; also the JSON in its record file. All its processes have ended.

    Exactly one of ``exit_code`` and ``signal`` is set. ``started_at`` and ``finished_at`` are
    seconds since the Unix epoch. ``max_rss_kb`` is the largest resident size of any single process
    that was waited for (never below that of a shim, about 10 MB), ``cpu_s`` the sum of all.
    Decisions depend on ``cause``; ``reason`` is text for people.
    ``log_bytes`` is the size of the log at the end. ``output_count`` says how many outputs there
    are; the launcher writes them into the file only, not into its message. ``durable`` is not in
    the file: False if the file could not be written (disk full …); the reason says why then.
    """

    id: str
    outcome: ProcessOutcome
    cause: EndCause
    exit_code: int | None
    signal: int | None
    reason: str
    timed_out: bool
    started_at: float
    finished_at: float
    max_rss_kb: int
    cpu_s: float
    context: Mapping[str, Any]
    log_bytes: int = 0
    output_count: int = 0
    outputs: Mapping[str, str] = field(default_factory=dict)
    durable: bool = True

    @classmethod
    def from_json(cls, record: Mapping[str, Any], *, durable: bool = True) -> Self:
        """Build it from what the launcher wrote. Raises ValueError if that is something else."""
        try:
            outcome = ProcessOutcome(record["outcome"])
            cause = EndCause(record["cause"])
            return cls(**{**record, "outcome": outcome, "cause": cause, "durable": durable})
        except (KeyError, TypeError) as error:
            raise ValueError(f"not an exit record: {error}") from error
