"""Run one role in this process: what ``shoal master``, ``worker``, ``api`` and ``alert-server`` do.

Imports a role's package only when that role is asked for, so each process loads its own alone.
``python -m shoal.client.local.roles master --data DIR`` is the same without the command line's
own imports; the local cluster forks processes that do the same (``fork_server.py``).
"""

import argparse
import asyncio
import ctypes
import os
import resource
import sys
import zoneinfo
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from shoal.client.libraries import structlog
from shoal.client.local.data_folder import (
    find_zookeeper_credential,
    own_state,
    read_state,
    running_state,
)
from shoal.client.local.process import (
    collect_in_pieces,
    configure_logging,
    no_collections,
    shorten_thread_turns,
)
from shoal.core.errors import ShoalError
from shoal.runtime import failpoints
from shoal.runtime.limits.descriptors import raise_descriptor_limit
from shoal.runtime.limits.memory_shortage import MemoryShortage
from shoal.runtime.settings import ClusterSettings, load_settings

if TYPE_CHECKING:
    from shoal.master.settings import MasterSettings

log = structlog.get_logger()

ROLES = ("master", "worker", "api", "alert")
# The role was stopped; any other end is an error.
EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
_PR_SET_DUMPABLE = 4  # of prctl(2)


def run_role(role: str, data: Path, overrides: Mapping[str, Any]) -> int:
    """Run ``role`` until it is stopped; return the exit status.

    Ends the process with EXIT_NO_MEMORY if it runs out of memory.

    ``overrides`` are settings of the role that go before file and environment.
    """
    # The pinned tzdata package, not the machine's own files: all nodes must agree on fire times.
    zoneinfo.reset_tzpath(to=())
    # The memory of a role holds keys and secrets: its image belongs into no file. A task that wants
    # one raises the limit again.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if role != "worker":  # a worker does so itself: its tasks have the limit that it was given
        raise_descriptor_limit()
        _hide_memory()
    try:
        cluster = load_cluster(data)
        if "zookeeper" not in cluster.model_fields_set:
            own_state(cluster.data)  # raises if the folder tells another cluster's
        configure_logging(cluster.log_level, cluster.log_format)
        if points := failpoints.armed():
            log.warning("failpoints are armed: this process will hurt itself", points=points)
        with no_collections():
            serving = _serving(role, cluster, overrides)
        # Loaded modules stay: collections of garbage need not look through them each time.
        collect_in_pieces()
        if role == "api":
            shorten_thread_turns()
        shortage = MemoryShortage()
        with (
            asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
            shortage.watching(runner.get_loop()),
        ):
            runner.run(serving)
    except ShoalError as error:
        print(f"shoal {role}: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_OK
    return EXIT_OK


def _hide_memory() -> None:
    """Keep what this process has in memory from others of its user, also from a core handler.

    Masters and APIs have the keys of all secrets; tasks may run as the same user. The limit of core
    files does not count where the kernel passes cores to a program. What a process starts is as
    readable as ever.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise ShoalError(f"cannot hide the memory of this process: {os.strerror(number)}")


def load_cluster(data: Path) -> ClusterSettings:
    """Return the cluster's settings; a local cluster's own address fills the gap."""
    cluster = load_settings(ClusterSettings, "cluster", data)
    state = read_state(cluster.data)
    if state is not None and "history_url" not in cluster.model_fields_set:
        history = str(cluster.data / "history")
        cluster = cluster.model_copy(update={"history_url": history})
    is_own = state is not None and (state.is_of(cluster.data) or running_state(cluster.data))
    if state is not None and is_own and "zookeeper" not in cluster.model_fields_set:
        found = {"zookeeper": state.zookeeper}
        if not cluster.zookeeper_credential:
            found["zookeeper_credential"] = find_zookeeper_credential(cluster.data)
        cluster = cluster.model_copy(update=found)
    return cluster


def load_master(cluster: ClusterSettings) -> "MasterSettings":
    """Return the settings of masters on this machine."""
    from shoal.master.settings import MasterSettings

    return load_settings(MasterSettings, "master", cluster.data)


def import_all(data: Path) -> None:
    """Import the packages of all roles, for processes that are forked from the caller.

    The driver is that of the database of ``data``; settings without one are the roles' to report.
    """
    zoneinfo.reset_tzpath(to=())  # as in run_role, before a module asks for a time zone
    for role in ROLES:
        import_module(f"shoal.{role}.settings")
        import_module(f"shoal.{role}.main")
    from shoal.sql.engine import import_driver

    with suppress(ShoalError):
        import_driver(load_settings(ClusterSettings, "cluster", data).database)


def _serving(
    role: str, cluster: ClusterSettings, overrides: Mapping[str, Any]
) -> Coroutine[Any, Any, None]:
    """Import a role's package and return what runs it."""
    match role:
        case "master":
            from shoal.master.main import serve as serve_master

            return serve_master(_with(load_master(cluster), overrides), cluster)
        case "worker":
            from shoal.worker.main import serve as serve_worker
            from shoal.worker.settings import WorkerSettings

            worker = load_settings(WorkerSettings, "worker", cluster.data)
            return serve_worker(_with(worker, overrides), cluster)
        case "api":
            from shoal.api.main import serve as serve_api
            from shoal.api.settings import ApiSettings

            api = load_settings(ApiSettings, "api", cluster.data)
            return serve_api(_with(api, overrides), cluster)
        case "alert":
            from shoal.alert.main import serve as serve_alerts
            from shoal.alert.settings import AlertSettings

            alert = load_settings(AlertSettings, "alert", cluster.data)
            return serve_alerts(_with(alert, overrides), cluster)
        case _:
            raise ShoalError(f"unknown role {role!r}; there are {', '.join(ROLES)}")


def _with(settings: Any, overrides: Mapping[str, Any]) -> Any:
    """Return the settings with ``overrides`` in place, checked again."""
    given = {name: value for name, value in overrides.items() if value is not None}
    return type(settings)(**{**settings.model_dump(), **given})


def main() -> int:
    """Entry point of the local cluster's processes."""
    parser = argparse.ArgumentParser(prog="shoal.client.local.roles")
    parser.add_argument("role", choices=ROLES)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    arguments = parser.parse_args()
    overrides = dict(item.split("=", 1) for item in arguments.set)
    return run_role(arguments.role, arguments.data, overrides)


if __name__ == "__main__":
    # Thread pools of libraries must not hold up the end of a role that has ended in order.
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
