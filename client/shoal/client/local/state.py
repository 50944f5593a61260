"""What a local cluster leaves in its data folder so that others find it.

``cluster.json`` tells the addresses; ``cluster.lock`` is held by the running ``shoal up``;
``token`` opens the API, ``zookeeper.password`` the embedded ZooKeeper; ``tls/`` holds the identity
that the processes show each other.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from shoal.client.errors import AlreadyRunning, DataFolderUnusable

STATE_FILE = "cluster.json"
LOCK_FILE = "cluster.lock"
PASSWORD_FILE = "zookeeper.password"  # noqa: S105 - the name of the file
SHORTEST_TOKEN = 20  # characters; the API refuses shorter ones too


@dataclass(frozen=True)
class ClusterState:
    """Where the parts of a local cluster are. ``pid`` is the supervisor's."""

    api: str  # http://127.0.0.1:8765
    zookeeper: str
    database_url: str  # empty: SQLite in the data folder
    pid: int
    masters: int
    workers: int


def read_state(data: Path) -> ClusterState | None:
    """Return what the newest start left, None if there is nothing readable."""
    try:
        state = ClusterState(**json.loads((data / STATE_FILE).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    well_typed = all(type(getattr(state, f.name)) is f.type for f in fields(ClusterState))
    return state if well_typed and state.api.startswith(("http://", "https://")) else None


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
            from shoal.client.local.lean_structlog import structlog

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
def cluster_lock(data: Path) -> Iterator[None]:
    """Hold the data folder for one supervisor. Raises AlreadyRunning."""
    descriptor = os.open(data / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            state = read_state(data)
            raise AlreadyRunning(
                data, state.api if state else None, state.pid if state else None
            ) from None
        yield
    finally:
        os.close(descriptor)


def is_running(data: Path) -> bool:
    """Whether a supervisor holds the data folder now."""
    try:
        descriptor = os.open(data / LOCK_FILE, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
