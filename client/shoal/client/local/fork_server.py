"""The process that the roles of a local cluster are forked from.

A role imports 40 to 100 MB of code before it does anything. The roles of one cluster are forked
from one process that has imported all of it, so they share these pages until they write to them,
and the cluster starts with one import instead of one for each role. A role is a process like any
other: it has its own session, log and environment, and ``ps`` shows its command line as if it had
been started with it.

The supervisor (``ForkServer``) and the process (``main``) talk by a Unix socket, one JSON object
in each message. A request is ``{}`` with two descriptors: a file in memory with the command line
and the environment of the role, and the role's log. The answer is ``{"pid": ...}`` with a
descriptor of the process (pidfd_open(2)), or ``{"error": ...}``. When a role has ended, the
process sends ``{"ended": pid, "status": ...}``. The order of ends and answers is that of events,
and the order of answers is that of requests. A request may stay without an answer for long (a
machine that swaps, a fork server that imports): the roles that run are not touched for that. The
answer to a request that was given up kills the role that it names.

If the process ends, the kernel kills all roles, and the next ``start`` begins with a new process.
If the supervisor ends, the kernel kills the process, and so the roles. SIGTERM and SIGINT are
ignored, because a service manager may send them to all processes of a cluster at once: workers
have tasks to end first.
"""

import array
import errno
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NoReturn, cast

from shoal.client.errors import ServerFailed
from shoal.client.local.zookeeper import die_with_parent

_COMMAND = (sys.executable, "-m", "shoal.client.local.roles")
START_S = 60.0  # the imports of all roles take two seconds, and longer on a busy machine
_MOST_BYTES = 4096  # of a message
_ROOM = 256  # bytes of a role's command line beside its data folder
_TAIL_LINES = 15
_IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1  # of prctl(2)


class RoleProcess:
    """A role that was forked; offers what the supervisor needs of ``subprocess.Popen``."""

    def __init__(self, server: "_Process", pid: int, pidfd: int) -> None:
        self.pid = pid
        self._server, self._pidfd = server, pidfd

    def __del__(self) -> None:
        os.close(self._pidfd)

    @property
    def returncode(self) -> int | None:
        """Exit status, negative after a signal; None while the process is not known to be over."""
        return self._server.statuses.get(self.pid)

    def poll(self) -> int | None:
        """Look whether it has ended; return what ``returncode`` is then."""
        if self.returncode is None:
            self._server.receive()
        if self.returncode is None and self._server.ended and _is_readable(self._pidfd, 0.0):
            self._server.statuses[self.pid] = -signal.SIGKILL  # the kernel's, see above
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its status. Raises subprocess.TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            left_s = None if deadline is None else deadline - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise subprocess.TimeoutExpired(str(self.pid), cast(float, timeout))
            # The process reports the end of the role; the role's end is news only after its own.
            source = self._pidfd if self._server.ended else self._server.control.fileno()
            _is_readable(source, left_s)
        return status

    def send_signal(self, number: int) -> None:
        """Send a signal to exactly this process; do nothing if it has ended."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Request:
    """A role that was asked for."""

    def __init__(self, server: "_Process") -> None:
        self._server = server
        self._role: RoleProcess | None = None
        self._error: OSError | None = None
        self._is_given_up = False

    def poll(self) -> RoleProcess | None:
        """Return the role, None while there is no answer. Raises ServerFailed and OSError."""
        if self._role is None and self._error is None and self._server.receive():
            raise self._server.failure("ended before it started a role")
        if self._error is not None:
            raise self._error
        return self._role

    def wait(self) -> RoleProcess:
        """As ``poll``, for up to ``START_S``; then the request is given up."""
        deadline = time.monotonic() + START_S
        while (role := self.poll()) is None:
            if not _is_readable(self._server.control.fileno(), deadline - time.monotonic()):
                self.give_up()
                raise self._server.failure(f"did not start a role within {START_S:g} s")
        return role

    def give_up(self) -> None:
        """Kill the role that it leads to."""
        self._is_given_up = True
        if self._role is not None:
            self._role.kill()

    def answer(self, message: Mapping[str, Any], fds: Sequence[int]) -> None:
        """Take the answer of the process."""
        if "error" in message:
            self._error = OSError(message["error"], os.strerror(message["error"]))
        elif not fds:  # this process has no room for another descriptor
            os.kill(message["pid"], signal.SIGKILL)
            self._error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        else:
            self._role = RoleProcess(self._server, message["pid"], fds[0])
            if self._is_given_up:
                self._role.kill()


class ForkServer:
    """The supervisor's side. Synchronous; for one thread, whose end ends the roles."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._log = data / "logs" / "roles.log"
        self._process: _Process | None = None

    def prepare(self) -> None:
        """Start the process if it does not run; do not wait for its imports. Raises OSError."""
        if self._process is None or self._process.receive():
            self.close()
            self._process = _Process(self._data, self._log)

    def start(
        self, arguments: Sequence[str], environment: Mapping[str, str], output: IO[bytes]
    ) -> RoleProcess:
        """Start ``python -m shoal.client.local.roles ARGUMENTS``; it writes to ``output``.

        Waits for it, up to ``START_S``. Raises ServerFailed, or OSError if there is no room for
        another process.
        """
        return self.request(arguments, environment, output).wait()

    def request(
        self, arguments: Sequence[str], environment: Mapping[str, str], output: IO[bytes]
    ) -> Request:
        """As ``start``, but do not wait for the role. Raises OSError."""
        self.prepare()
        assert self._process is not None
        return self._process.request(arguments, environment, output)

    def close(self) -> None:
        """End the process. Kills the roles that are left."""
        if self._process is not None:
            self._process.close()
            self._process = None


class _Process:
    """One life of the process, as its supervisor sees it."""

    def __init__(self, data: Path, log: Path) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        self._log = log
        #: Of the roles that have ended, by process id.
        self.statuses: dict[int, int] = {}
        #: Whether the process has closed its end: the kernel kills all roles then.
        self.ended = False
        self._requests: deque[Request] = deque()  # without an answer, the oldest first
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A role writes its command line over that of the process, so there must be room for it.
        room = "." * (len(os.fsencode(data)) + len(os.fsencode(sys.executable)) + _ROOM)
        command = [sys.executable, "-m", __name__, str(theirs.fileno()), "--data", str(data), room]
        with theirs, log.open("wb") as output:
            self._process = subprocess.Popen(
                die_with_parent(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    def request(
        self, arguments: Sequence[str], environment: Mapping[str, str], output: IO[bytes]
    ) -> Request:
        """See ``ForkServer.request``."""
        asked = {"arguments": list(arguments), "environment": dict(environment)}
        content = os.memfd_create("role", os.MFD_CLOEXEC)  # an environment may be large
        with open(content, "wb") as file:
            file.write(json.dumps(asked).encode())
            file.flush()
            with suppress(BrokenPipeError):  # then there is no answer
                socket.send_fds(self.control, [b"{}"], [content, output.fileno()])
        found = Request(self)
        self._requests.append(found)
        return found

    def receive(self) -> bool:
        """Take what has been reported; return whether the process has ended."""
        while not self.ended and _is_readable(self.control.fileno(), 0.0):
            self._read()
        return self.ended

    def _read(self) -> None:
        """Take what comes next: an answer, the end of a role, or of all."""
        try:
            content, fds, _, _ = socket.recv_fds(self.control, _MOST_BYTES, 1)
        except ConnectionResetError:
            content, fds = b"", []
        if not content:
            self.ended = True
            return
        message: dict[str, Any] = json.loads(content)
        if "ended" in message:
            self.statuses[message["ended"]] = message["status"]
            return
        # A number that is in use again has no status any longer.
        self.statuses.pop(message.get("pid", 0), None)
        self._requests.popleft().answer(message, fds)

    def close(self) -> None:
        """See ``ForkServer.close``."""
        self.ended = True
        self._process.kill()
        self._process.wait()
        self.control.close()

    def failure(self, what: str) -> ServerFailed:
        """Return the error that says ``what`` the process did, with the end of its log."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return ServerFailed("the process of the roles", what, self._log, lines[-_TAIL_LINES:])


def _is_readable(fd: int, timeout_s: float | None) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1e3))


# -- the process ------------------------------------------------------------------------------


def main() -> None:
    """Fork roles on request until the supervisor has gone."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=int(sys.argv[1]))
    gc.disable()
    from shoal.client.local import roles
    from shoal.worker.supervisor import proctree

    roles.import_all(Path(sys.argv[3]))
    proctree.show_command(sys.orig_argv[:-1])
    gc.collect()
    gc.freeze()  # a collection would write to every object, and so copy its page
    ended, wakeup = os.pipe()
    os.set_blocking(ended, False)
    os.set_blocking(wakeup, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    poll = select.poll()
    for fd in (control.fileno(), ended):
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == ended:
                os.read(ended, 4096)
                _report_ends(control)
                continue
            content, fds, _, _ = socket.recv_fds(control, _MOST_BYTES, 2)
            if not content:
                return
            _fork(control, fds)


def _report_ends(control: socket.socket) -> None:
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            _send(control, {"ended": found[0], "status": os.waitstatus_to_exitcode(found[1])})


def _fork(control: socket.socket, fds: list[int]) -> None:
    parent = os.getpid()
    # A signal for the role that comes before it has its own actions must not be ignored as one for
    # this process: it waits, for blocked signals are not ignored.
    signal.pthread_sigmask(signal.SIG_BLOCK, _IGNORED)
    try:
        pid = os.fork()
        if pid == 0:
            _become_role(parent, *fds)
        pidfd = os.pidfd_open(pid)
    except OSError as error:
        _send(control, {"error": error.errno})
        return
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _IGNORED)
        for fd in fds:
            os.close(fd)
    _send(control, {"pid": pid}, pidfd)
    os.close(pidfd)


def _send(control: socket.socket, message: Mapping[str, object], *fds: int) -> None:
    given = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    with suppress(BrokenPipeError):  # the supervisor has gone: the kernel ends us
        control.sendmsg([json.dumps(message).encode()], given)


def _become_role(parent: int, request: int, log: int) -> NoReturn:
    """Turn this copy of the process into a role, as if it had been started as one."""
    status = 1
    try:
        from shoal.client.local import roles
        from shoal.runtime import failpoints
        from shoal.worker.supervisor import proctree

        proctree.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("the parent ended first")
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (*_IGNORED, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _IGNORED)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.lseek(request, 0, os.SEEK_SET)
        with open(request, "rb", closefd=False) as file:
            asked: dict[str, Any] = json.load(file)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        os.environ.update(asked["environment"])
        failpoints.arm(os.environ)
        sys.argv = [roles.__file__, *asked["arguments"]]
        proctree.show_command((*_COMMAND, *asked["arguments"]))
        gc.enable()
        status = roles.main()
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - it must not continue as a second server
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main()
