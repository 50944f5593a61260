"""``shoal doctor``: is everything here that Shoal needs, and if not, what to do."""

import os
import platform
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from shoal.client.local.cluster import DEFAULT_API_PORT
from shoal.client.local.data_folder import is_running, running_state
from shoal.client.local.java import find_java
from shoal.client.local.zookeeper import HOST, find_jars, four_letter_word
from shoal.core.errors import ShoalError, UnusablePlugin
from shoal.runtime import plugins, source_kinds
from shoal.runtime.secret_stores import stores
from shoal.runtime.settings import ClusterSettings, load_settings

_MIN_FREE_MB = 1024
_CONNECT_TIMEOUT_S = 3.0


class CheckVerdict(StrEnum):
    """How a check went."""

    OK = "ok"
    WARNING = "warning"  # works, but look at it
    FAILED = "failed"  # Shoal cannot run like this


@dataclass(frozen=True)
class DoctorFinding:
    """One check: what was looked at, what was found, what to do if it is not fine."""

    check: str
    verdict: CheckVerdict
    found: str
    advice: str = ""


def examine(data: Path) -> Iterator[DoctorFinding]:
    """Look at this machine and the cluster of ``data``; yield findings as they come."""
    # An older one cannot even load this file; `make` says so before.
    yield DoctorFinding(
        "Python", CheckVerdict.OK, f"{platform.python_version()} ({sys.executable})"
    )
    yield _system()
    yield from _packages()
    yield from _plugins()
    yield _guarded("Java", _java)
    yield _guarded("data folder", lambda: _data_folder(data))
    yield _guarded("disk", lambda: _disk(data))
    running = is_running(data)
    try:
        settings = load_settings(ClusterSettings, "cluster", data)
    except ShoalError as error:
        yield DoctorFinding(
            "settings", CheckVerdict.FAILED, str(error), "correct the setting it names"
        )
        return
    yield DoctorFinding(
        "settings",
        CheckVerdict.OK,
        f"partitions {settings.partitions}, sessions {settings.session_timeout_s:g} s",
    )
    yield _guarded("API port", lambda: _api_port(data, running))
    yield _guarded("ZooKeeper", lambda: _zookeeper(data, settings, running))
    yield _guarded("database", lambda: _database(settings))


def _guarded(check: str, look: Callable[[], DoctorFinding]) -> DoctorFinding:
    """A check that fails in an unforeseen way is a finding, not the end of the examination."""
    try:
        return look()
    except ShoalError as error:
        return DoctorFinding(check, CheckVerdict.FAILED, str(error))
    except OSError as error:
        return DoctorFinding(
            check, CheckVerdict.FAILED, f"{error.filename or ''} {error.strerror}".strip()
        )


def _system() -> DoctorFinding:
    name = f"{platform.system()} {platform.release()}, {os.cpu_count()} CPUs"
    if sys.platform != "linux":
        return DoctorFinding(
            "system",
            CheckVerdict.WARNING,
            name,
            "workers rely on Linux to end every process of a task; run them there",
        )
    return DoctorFinding("system", CheckVerdict.OK, name)


def _packages() -> Iterator[DoctorFinding]:
    wanted = {
        "kazoo": "coordination",
        "grpc": "rpc",
        "sqlalchemy": "sql",
        "fastapi": "api",
        "pyspark": "spark",
    }
    missing = {package: extra for package, extra in wanted.items() if find_spec(package) is None}
    if missing:
        yield DoctorFinding(
            "packages",
            CheckVerdict.FAILED,
            f"missing: {', '.join(missing)}",
            "pip install 'shoal[local]'",
        )
    else:
        yield DoctorFinding("packages", CheckVerdict.OK, "all roles can run here")


def _plugins() -> Iterator[DoctorFinding]:
    """Import every installed plug-in; each broken one is a finding."""
    loaded: list[tuple[Iterable[str], Callable[[str], type]]] = [
        (plugins.task_type_names(), plugins.load_task_type),
        (plugins.channel_kinds(), plugins.load_channel),
        (source_kinds.source_kinds(), source_kinds.load_source_kind),
        (sorted(stores.installed()), stores.load_store_kind),
    ]
    count, is_sound = 0, True
    for names, load in loaded:
        for name in names:
            count += 1
            try:
                load(name)
            except UnusablePlugin as error:
                is_sound = False
                yield DoctorFinding("plug-ins", CheckVerdict.FAILED, str(error))
    if is_sound:
        yield DoctorFinding("plug-ins", CheckVerdict.OK, f"{count} can be loaded")


def _java() -> DoctorFinding:
    java = find_java()
    find_jars()
    return DoctorFinding(
        "Java", CheckVerdict.OK, f"{java.version} ({java.origin}: {java.executable})"
    )


def _data_folder(data: Path) -> DoctorFinding:
    place = next(p for p in (data, *data.parents) if p.exists())
    with tempfile.TemporaryFile(dir=place) as file:
        file.write(b"shoal")
        file.flush()
        os.fsync(file.fileno())
    what = str(data) if place == data else f"{data} (will be created)"
    return DoctorFinding("data folder", CheckVerdict.OK, what)


def _disk(data: Path) -> DoctorFinding:
    place = next(p for p in (data, *data.parents) if p.exists())
    free_mb = shutil.disk_usage(place).free // 2**20
    if free_mb < _MIN_FREE_MB:
        return DoctorFinding(
            "disk",
            CheckVerdict.WARNING,
            f"{free_mb} MB free below {place}",
            f"logs and ZooKeeper want {_MIN_FREE_MB} MB; free some, or use --data",
        )
    return DoctorFinding("disk", CheckVerdict.OK, f"{free_mb / 1024:.0f} GB free below {place}")


def _api_port(data: Path, running: bool) -> DoctorFinding:
    state = running_state(data)
    if running and state is not None:
        return DoctorFinding("API port", CheckVerdict.OK, f"this cluster's API is at {state.api}")
    try:
        socket.create_server((HOST, DEFAULT_API_PORT)).close()
    except OSError:
        return DoctorFinding(
            "API port",
            CheckVerdict.WARNING,
            f"{DEFAULT_API_PORT} is taken",
            "`shoal up` will take the next free port, or give one with --port",
        )
    return DoctorFinding("API port", CheckVerdict.OK, f"{DEFAULT_API_PORT} is free")


def _zookeeper(data: Path, settings: ClusterSettings, running: bool) -> DoctorFinding:
    state = running_state(data)
    configured = "zookeeper" in settings.model_fields_set
    if not configured and not (running and state):
        return DoctorFinding("ZooKeeper", CheckVerdict.OK, "`shoal up` starts an embedded server")
    hosts = settings.zookeeper if configured or state is None else state.zookeeper
    dead = []
    for part in hosts.partition("/")[0].split(","):
        host, _, port = part.strip().rpartition(":")
        answer = four_letter_word(host, int(port), "srvr", _CONNECT_TIMEOUT_S)
        if b"Mode: " not in answer and not _listens(host, int(port)):
            dead.append(part)
    if dead:
        return DoctorFinding(
            "ZooKeeper",
            CheckVerdict.FAILED,
            f"no answer from {', '.join(dead)}",
            "start it, or correct the setting zookeeper / SHOAL_ZOOKEEPER",
        )
    return DoctorFinding("ZooKeeper", CheckVerdict.OK, hosts)


def _listens(host: str, port: int) -> bool:
    """Whether a server accepts connections: it may have the four-letter words off."""
    try:
        socket.create_connection((host, port), _CONNECT_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def _database(settings: ClusterSettings) -> DoctorFinding:
    import asyncio

    from shoal.sql import Database

    async def ping() -> None:
        async with Database(settings.database) as database:
            await database.ping()  # a missing file that was there before is an error

    if settings.database.startswith("sqlite"):
        file = Path(settings.database.partition("///")[2])
        used = file.with_name(f"{file.name}.lock")  # empty, or missing: it never was there
        if not file.exists() and not (used.exists() and used.stat().st_size):
            return DoctorFinding("database", CheckVerdict.OK, f"SQLite, {file} (will be created)")
    asyncio.run(ping())
    kind = settings.database.partition(":")[0]
    return DoctorFinding("database", CheckVerdict.OK, f"{kind} answers")
