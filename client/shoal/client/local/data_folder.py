"""What a local cluster leaves in its data folder so that others find it.

``cluster.json`` has the addresses. They are valid only while the running ``shoal up`` holds
``cluster.lock``: a copy has the same files, but no process holds its lock. A supervisor takes that
lock, and writes who it is, within an exclusive lock of ``cluster.gate``; readers look within a
shared one. So no reader finds the lock held and still reads what was copied, and a supervisor
never finds the lock in the hands of a reader. Deleting the gate costs that order, no more: a
running supervisor is found without it.

``token`` opens the API, ``zookeeper.password`` the embedded ZooKeeper; ``tls/`` holds the identity
that the processes show each other.
"""

import fcntl
import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from shoal.client.errors import AlreadyRunning, CopiedFolder, DataFolderUnusable
from shoal.runtime.folder_identity import FolderIdentity

STATE_FILE = "cluster.json"
LOCK_FILE = "cluster.lock"
PASSWORD_FILE = "zookeeper.password"  # noqa: S105 - the name of the file
SHORTEST_TOKEN = 20  # characters; the API refuses shorter ones too
_GATE_FILE = "cluster.gate"


@dataclass(frozen=True)
class ClusterState:
    """Where the parts of a local cluster are. ``pid`` is the supervisor's.

    ``start`` is random and in the lock file, too. ``path`` and ``identity`` are those of the data
    folder at the start. ``identity`` is empty where file systems
    have none.
    """

    api: str  # http://127.0.0.1:8765
    zookeeper: str
    database_url: str  # empty: SQLite in the data folder
    pid: int
    masters: int
    workers: int
    start: str
    path: str
    identity: str

    def is_of(self, data: Path) -> bool:
        """Whether it was written in this folder, and not in one that this is a copy of."""
        written = FolderIdentity.from_text(self.identity)
        own = FolderIdentity.of(data)
        return written is None or own is None or written.is_same(own)


@dataclass(frozen=True)
class Holder:
    """The supervisor that holds a data folder, as it has written into the lock file.

    ``pid`` 0, ``start`` empty: the file is damaged.
    """

    pid: int = 0
    start: str = ""


def read_state(data: Path) -> ClusterState | None:
    """Return what the newest start left, None if there is nothing readable."""
    try:
        state = ClusterState(**json.loads((data / STATE_FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    well_typed = all(type(getattr(state, f.name)) is f.type for f in fields(ClusterState))
    return state if well_typed and state.api.startswith(("http://", "https://")) else None


def running_state(data: Path) -> ClusterState | None:
    """Return what the supervisor has left that holds the data folder now.

    None: none does, or it has not got so far.
    """
    holder, state = holder_of(data), read_state(data)
    return state if holder is not None and state and state.start == holder.start else None


def own_state(data: Path) -> ClusterState | None:
    """Return what the newest start in this very folder left; None: there was none.

    Raises CopiedFolder if it is of another folder, and nothing runs in this one.
    """
    state = read_state(data)
    if state is None or state.is_of(data) or running_state(data) is not None:
        return state
    raise CopiedFolder(data, state.path, state.api)


def make_data_folder(data: Path) -> None:
    """Make the data folder if it is not there, and close it to others if it is.

    Raises DataFolderUnusable if it is another user's, who could replace what is in it.
    """
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = data.stat()
        if found.st_uid != os.geteuid():
            raise DataFolderUnusable(
                data,
                f"it belongs to the user with number {found.st_uid}, not to you",
                "choose another folder with --data, or make it yours",
            )
        if found.st_mode & 0o077:
            data.chmod(found.st_mode & 0o700)
            # Read by every short command, and said by hardly any.
            from shoal.client.libraries import structlog

            structlog.get_logger().warning(
                "data folder was open to others: closed it", folder=str(data)
            )
    except OSError as error:
        raise unusable(data, error) from error


def unusable(data: Path, error: OSError) -> DataFolderUnusable:
    """Return the error that names the file of ``data`` that is in the way."""
    named = error.filename2 or error.filename
    path = Path(named) if isinstance(named, str) else data
    return DataFolderUnusable(
        path, error.strerror or str(error), "put that right, or choose another folder with --data"
    )


def write_state(data: Path, state: ClusterState) -> None:
    """Replace the state file in one step."""
    write_private(data / STATE_FILE, json.dumps(asdict(state), indent=2) + "\n")


def write_private(path: Path, text: str) -> None:
    """Write ``text`` so that only this user can read it, and only as a whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    temporary.replace(path)


def ensure_zookeeper_password(data: Path) -> str:
    """Return the password of the embedded ZooKeeper, made at the first start.

    Raises DataFolderUnusable.
    """
    file = data / PASSWORD_FILE
    if not file.exists():
        write_private(file, secrets.token_urlsafe(32) + "\n")
    password = _read_password(file)
    if password is None:
        raise DataFolderUnusable(
            file,
            "it does not hold the password that `shoal up` has made",
            "put the file back; if it is lost, stop the cluster and delete this file and the "
            "folder zookeeper beside it: runs go on from the database",
        )
    return password


def zookeeper_credential(password: str) -> str:
    """Return what processes show the embedded ZooKeeper."""
    return f"digest:shoal:{password}"


def find_zookeeper_credential(data: Path) -> str:
    """Return the credential for the embedded ZooKeeper of ``data``; "" if there is none."""
    password = _read_password(data / PASSWORD_FILE)
    return zookeeper_credential(password) if password else ""


def _read_password(file: Path) -> str | None:
    try:
        password = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return password if len(password) >= SHORTEST_TOKEN and ":" not in password else None


def ensure_token(data: Path) -> str:
    """Return the API's token, made at the first start. Raises DataFolderUnusable."""
    file = data / "token"
    if not file.exists():
        write_private(file, secrets.token_urlsafe(32) + "\n")
    try:
        token = file.read_text().strip()
    except UnicodeDecodeError:
        token = ""
    if len(token) < SHORTEST_TOKEN or not all("!" <= c <= "~" for c in token):
        raise DataFolderUnusable(
            file,
            f"it holds no token of at least {SHORTEST_TOKEN} printable ASCII characters",
            "delete it, then a new one is made at the next start",
        )
    return token


@contextmanager
def cluster_lock(data: Path) -> Iterator[str]:
    """Hold the data folder for one supervisor; give what names this start. Raises AlreadyRunning.

    From here on an older ``cluster.json``, which may have come with a copy, counts no longer.
    """
    with ExitStack() as held:
        start = secrets.token_hex(16)
        # The gate is made first, so that a reader that finds the lock finds the gate, too.
        with _opened(data / _GATE_FILE, os.O_RDWR | os.O_CREAT) as gate:
            lock = held.enter_context(_opened(data / LOCK_FILE, os.O_RDWR | os.O_CREAT))
            fcntl.flock(gate, fcntl.LOCK_EX)
            is_ours = _lock(lock, fcntl.LOCK_EX)
            if is_ours:
                os.ftruncate(lock, 0)
                os.pwrite(lock, json.dumps(asdict(Holder(os.getpid(), start))).encode(), 0)
        if not is_ours:
            state = running_state(data)
            raise AlreadyRunning(data, state.api if state else None, state.pid if state else None)
        yield start


def holder_of(data: Path) -> Holder | None:
    """Return the supervisor that holds the data folder now; None: none does.

    Without a gate, which may have been deleted, the lock is read all the same.
    """
    with ExitStack() as opened:
        try:
            # Reading needs no right to write: the folder may be mounted read-only.
            lock = opened.enter_context(_opened(data / LOCK_FILE, os.O_RDONLY))
            gate = None
            with suppress(FileNotFoundError):
                gate = opened.enter_context(_opened(data / _GATE_FILE, os.O_RDONLY))
        except OSError:
            return None
        if gate is not None:
            fcntl.flock(gate, fcntl.LOCK_SH)
        if _lock(lock, fcntl.LOCK_SH):
            fcntl.flock(lock, fcntl.LOCK_UN)  # before the gate opens for a supervisor
            return None
        content = os.read(lock, 4096)
    try:
        found = Holder(**json.loads(content))
    except (ValueError, TypeError):
        return Holder()
    return found if type(found.pid) is int and type(found.start) is str else Holder()


def is_running(data: Path) -> bool:
    """Whether a supervisor holds the data folder now."""
    return holder_of(data) is not None


def holds_lock(pid: int, data: Path) -> bool:
    """Whether a process has the lock file of ``data`` open, as its supervisor does.

    A number of another container means another process here. True where that cannot be looked at.
    """
    if sys.platform != "linux":
        return True
    try:
        lock = os.stat(data / LOCK_FILE)
        with os.scandir(f"/proc/{pid}/fd") as entries:
            return any(_is_file(entry.path, lock) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # another user's
        return True


def _is_file(path: str, file: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(path), file)
    except OSError:  # closed meanwhile
        return False


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """Give the descriptor of a file; to close it releases its lock."""
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    """Take a lock; return whether it was free."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def ensure_identity(folder: Path) -> None:
    """Make the identity in ``folder``, or check the one that is there.

    Raises DataFolderUnusable if authority, certificate and key are not three that belong
    together: no process could talk to another, and gRPC would not say why.
    """
    # Commands that only ask the API need neither gRPC nor cryptography.
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import serialization

    from shoal.proto.tls import create_identity

    files = create_identity(folder)
    try:
        authority = x509.load_pem_x509_certificate(files.ca.read_bytes())
        certificate = x509.load_pem_x509_certificate(files.cert.read_bytes())
        key = serialization.load_pem_private_key(files.key.read_bytes(), password=None)
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise _broken(folder) from error
    if key.public_key() != certificate.public_key():
        raise _broken(folder)


def _broken(folder: Path) -> DataFolderUnusable:
    return DataFolderUnusable(
        folder,
        "its ca.pem, node.pem and node.key are not the PEM files of one identity",
        "delete the folder, then a new identity is made at the next start",
    )
