"""Starting an attempt's program: streams, folder, session, and words for what goes wrong.

The program is spawned, not forked: the kernel lends it our memory until it runs, so a start costs
what it costs the smallest of processes. What cannot be asked of a spawn, the caller has already:
niceness, and adopting what the program leaves.
"""

from __future__ import annotations

import errno
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

HINTS = {
    errno.ENOEXEC: "not a program of this machine; a script needs a first line such as #!/bin/sh",
    errno.E2BIG: "an argument or environment value exceeds 128 KiB, or all of them the stack limit",
    errno.EACCES: "permission denied; is it executable, and may this user enter its folder?",
}
#: No process, no descriptor or no memory can be had: another time, or elsewhere, it can.
NO_ROOM = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR)
_FOLDER_TRIES = 5  # one may be removed, empty, while a log is to be made in it
_HOME = "/"  # a folder that a process is in cannot be unmounted


class CannotStart(Exception):
    """The program could not be started; the text says which step failed and why."""

    @property
    def starved(self) -> bool:
        """Whether the machine has no room for it now, which is not the attempt's fault."""
        return isinstance(self.__cause__, OSError) and self.__cause__.errno in NO_ROOM


class Program:
    """What to run and where: the part of a launch message that concerns its start."""

    def __init__(self, launch: Mapping[str, object]) -> None:
        argv, env, stdin_path = launch["argv"], launch["env"], launch.get("stdin_path")
        assert isinstance(argv, list)
        assert isinstance(env, dict)
        self.argv: list[str] = argv
        self.env: dict[str, str] = env
        self.cwd = str(launch["cwd"])
        self.log_path = str(launch["log_path"])
        self.stdin_path = os.devnull if stdin_path is None else str(stdin_path)
        stdin = launch.get("stdin")
        self.stdin = None if stdin is None else str(stdin)  # instead of what is in the file


def altered_signals() -> list[int]:
    """Return the signals whose action the calling process has changed."""
    catchable = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    return [number for number in catchable if signal.getsignal(number) is not signal.SIG_DFL]


def start(program: Program, altered: Sequence[int], output: int) -> int:
    """Start the program; return its number. Raises CannotStart.

    It gets the default actions of the ``altered`` signals, and writes to the descriptor ``output``.
    Opening its standard input may block.
    """
    source = _open_input(program)
    try:
        try:
            os.chdir(program.cwd)
        except OSError as error:
            raise CannotStart(
                f"cannot enter the working directory {program.cwd}: {_why(error)}"
            ) from error
        return _run(program, [(source, 0), (output, 1), (output, 2)], altered)
    finally:
        os.chdir(_HOME)
        os.close(source)


def _open_input(program: Program) -> int:
    if program.stdin is not None:
        return _in_memory(program.stdin.encode())
    path = program.stdin_path
    try:
        return os.open(path, os.O_RDONLY)
    except OSError as error:
        raise CannotStart(f"cannot read standard input from {path}: {_why(error)}") from error


def _in_memory(content: bytes) -> int:
    """Return a descriptor to read ``content`` from. It touches no disk: there may be secrets."""
    try:
        source = os.memfd_create("stdin", os.MFD_CLOEXEC)
    except OSError as error:
        raise CannotStart(f"cannot make a standard input: {_why(error)}") from error
    view = memoryview(content)
    while view:
        view = view[os.write(source, view) :]
    os.lseek(source, 0, os.SEEK_SET)
    return source


def open_output(path: str) -> int:
    """Open the log of an attempt, see ``open_log``. Raises CannotStart."""
    try:
        return open_log(path)
    except OSError as error:
        raise CannotStart(
            f"cannot open the log file {path}: {_why(error)}; "
            "check space and permissions of the worker's log folder"
        ) from error


def open_log(path: str) -> int:
    """Open a log for appending, private to us. Raises OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    for _ in range(_FOLDER_TRIES):
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    return os.open(path, flags, 0o600)


def _run(program: Program, streams: list[tuple[int, int]], altered: Sequence[int]) -> int:
    name = program.argv[0]
    try:
        return _spawn_first(_candidates(name, program.env), program, streams, altered)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise CannotStart(f"cannot start another process: {_why(error)}") from error
        why = _spawn_failure(name, program.env, error)
        raise CannotStart(f"cannot run {name!r}: {why}") from error


def _candidates(name: str, env: Mapping[str, str]) -> Iterator[str]:
    """Yield where the program may be. A spawn only to find out would cost as much as any."""
    if "/" in name:
        yield name
        return
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        yield os.path.join(folder, name)


def _spawn_first(
    paths: Iterator[str],
    program: Program,
    streams: list[tuple[int, int]],
    altered: Sequence[int],
) -> int:
    """Spawn the first that is a program. Raises OSError as execvp(3) does: of several errors the
    first that is not about a file that does not exist.
    """
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for fd, number in streams]
    failure: OSError | None = None
    for path in paths:
        try:
            os.stat(path)
            return os.posix_spawn(
                path,
                program.argv,
                program.env,
                file_actions=actions,
                setsid=True,
                setsigmask=(),
                setsigdef=altered,
            )
        except OSError as error:
            if failure is None or failure.errno in _NOT_THERE:
                failure = error
    assert failure is not None
    raise failure


def _spawn_failure(program: str, env: Mapping[str, str], error: OSError) -> str:
    if error.errno == errno.ENOENT:
        if "/" not in program:
            return f"no such program in PATH={env.get('PATH', os.defpath)}"
        if os.path.exists(program):
            return "the interpreter named in its first line does not exist"
    return HINTS.get(error.errno or 0, _why(error))


def _why(error: OSError) -> str:
    return error.strerror or str(error)
