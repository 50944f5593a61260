"""The few steps between fork and exec, run in the child of the launcher.

The child is still a copy of the launcher here. Whatever goes wrong is told to the launcher through
``error_fd``, a pipe that a successful exec closes: silence means the program runs.
"""

from __future__ import annotations

import errno
import json
import os
import signal

from shoal.worker.proctree import PR_SET_PDEATHSIG, become_subreaper, prctl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

CATCHABLE = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}

HINTS = {
    errno.ENOEXEC: "not a program of this machine; a script needs a first line such as #!/bin/sh",
    errno.E2BIG: "an argument or environment value exceeds 128 KiB, or all of them the stack limit",
    errno.EACCES: "permission denied; is it executable, and may this user enter its folder?",
}


class CannotStart(Exception):
    """The program could not be started; the text says which step failed and why."""


class Program:
    """What to run and where: the part of a launch message that concerns the child."""

    def __init__(self, message: dict[str, object]) -> None:
        argv, env, stdin_path = message["argv"], message["env"], message.get("stdin_path")
        assert isinstance(argv, list)
        assert isinstance(env, dict)
        self.argv: list[str] = argv
        self.env: dict[str, str] = env
        self.cwd = str(message["cwd"])
        self.log_path = str(message["log_path"])
        self.stdin_path = os.devnull if stdin_path is None else str(stdin_path)


def run_child(
    program: Program,
    launcher_pid: int,
    altered: Sequence[int],
    niceness: int,
    error_fd: int,
    filtered: int | None,
) -> None:
    """Turn this copy of the launcher into the attempt's program. Never returns.

    ``altered`` are the signals whose action the launcher changed; all signals are blocked. The
    program writes to ``filtered`` if there is a filter in front of its log.
    """
    try:
        os.setsid()
        os.setpriority(os.PRIO_PROCESS, 0, niceness)
        _die_with(launcher_pid)
        become_subreaper()
        _connect_streams(program.log_path, program.stdin_path, filtered)
        _enter(program.cwd)
        _reset_signals(altered)
        _exec(program.argv, program.env)
    except CannotStart as error:
        _tell(error_fd, str(error))
    except BaseException as error:  # noqa: BLE001 - the parent must hear of everything
        name = program.argv[0]
        _tell(error_fd, f"cannot start {name!r}: {type(error).__name__}: {error}")
    finally:
        os._exit(127)


def _die_with(launcher_pid: int) -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher_pid:  # it died before we asked to be told
        os._exit(127)


def _connect_streams(log_path: str, stdin_path: str, filtered: int | None) -> None:
    try:
        source = os.open(stdin_path, os.O_RDONLY)
    except OSError as error:
        raise CannotStart(f"cannot read standard input from {stdin_path}: {_why(error)}") from error
    try:
        log = open_log(log_path)  # also for a filter: it cannot tell that this fails
    except OSError as error:
        raise CannotStart(
            f"cannot open the log file {log_path}: {_why(error)}; "
            "check space and permissions of the worker's log folder"
        ) from error
    os.dup2(source, 0)
    for stream in (1, 2):
        os.dup2(log if filtered is None else filtered, stream)


def open_log(path: str) -> int:
    """Open a log for appending, private to us. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(path, flags, 0o600)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        return os.open(path, flags, 0o600)


def _enter(cwd: str) -> None:
    try:
        os.chdir(cwd)
    except OSError as error:
        raise CannotStart(f"cannot enter the working directory {cwd}: {_why(error)}") from error


def _reset_signals(altered: Sequence[int]) -> None:
    """Give the program a fresh start: default actions, nothing blocked.

    Until here all signals were blocked, so none that the launcher sent meanwhile is lost.
    """
    for number in altered:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _exec(argv: list[str], env: dict[str, str]) -> None:
    program = argv[0]
    try:
        os.execvpe(program, argv, env)  # noqa: S606 - no shell on purpose
    except OSError as error:
        raise CannotStart(
            f"cannot run {program!r}: {_exec_failure(program, env, error)}"
        ) from error


def _exec_failure(program: str, env: dict[str, str], error: OSError) -> str:
    if error.errno == errno.ENOENT:
        if "/" not in program:
            return f"no such program in PATH={env.get('PATH', os.defpath)}"
        if os.path.exists(program):
            return "the interpreter named in its first line does not exist"
    return HINTS.get(error.errno or 0, _why(error))


def _why(error: OSError) -> str:
    return error.strerror or str(error)


def _tell(error_fd: int, message: str) -> None:
    os.write(error_fd, json.dumps(message).encode())
