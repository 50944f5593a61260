"""Settings of a worker process."""

import os
import re
import socket
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

_NOT_IN_SLUGS = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 60


def host_slug() -> str:
    """Return this machine's name as a slug, "worker" if it has none."""
    slug = _NOT_IN_SLUGS.sub("-", socket.gethostname()).strip("-._")
    return slug[:_LONGEST_NAME] or "worker"


def _cpus() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def _words(text: str) -> str:
    return " ".join(re.split(r"[,\s]+", text.strip(", \t\n")))


def _networks(text: str) -> str:
    for network in _words(text).split():
        try:
            ip_network(network)
        except ValueError as error:
            raise ValueError(f"expected networks such as 10.0.0.0/8: {error}") from None
    return _words(text)


def _roots(text: str) -> str:
    for root in _words(text).split():
        if not root.startswith(("/", "s3://", "s3a://", "hdfs://", "webhdfs://")):
            raise ValueError(
                f"{root}: expected absolute folders, and URLs such as s3://bucket/in or "
                "webhdfs://namenode:9870/data"
            )
    return _words(text)


def _proxy(url: str) -> str:
    mistake = ValueError("expected a URL such as http://proxy.example.org:3128")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise mistake from None
    if url and (parts.scheme != "http" or not parts.hostname):
        raise mistake
    return url


def _socket(url: str) -> str:
    if url and not re.fullmatch(r"unix:///[^\s?#]+", url):
        raise ValueError("expected a socket of this machine such as unix:///run/docker.sock")
    return url


def _container_networks(text: str) -> str:
    names = _words(text)
    for name in names.split():
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name) or name == "host":
            raise ValueError(
                f"{name}: expected names of networks such as none or bridge; never the host's own "
                "network or another container's"
            )
    return names


def _container_mounts(text: str) -> str:
    folders = _words(text)
    for folder in folders.split():
        path = folder.removesuffix(":rw")
        if not path.startswith("/") or ":" in path or ".." in path.split("/") or path == "/":
            raise ValueError(
                f"{folder}: expected absolute folders such as /data/in or /data/out:rw"
            )
    return folders


class WorkerSettings(BaseSettings):
    """Section ``[worker]`` of the settings file, or ``SHOAL_WORKER_…``."""

    model_config = SettingsConfigDict(env_prefix="SHOAL_WORKER_", frozen=True, extra="forbid")

    # Shown to people, and the folder of this worker's files below the data folder.
    name: str = Field(
        default_factory=host_slug, pattern=rf"^[A-Za-z0-9][A-Za-z0-9_.-]{{0,{_LONGEST_NAME - 1}}}$"
    )
    group: str = Field(default="default", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    slots: int = Field(default_factory=lambda: 2 * _cpus(), ge=1, le=10_000)  # attempts at once
    host: str = "127.0.0.1"  # address that masters and the API reach this worker at
    port: int = Field(default=0, ge=0, le=65535)  # of the gRPC server; 0 takes a free one
    # Empty: below <data>/workers/<name>/, see WorkerHome.
    work_dir: Path | None = None  # one folder per running attempt
    log_dir: Path | None = None
    spool_dir: Path | None = None  # results that no master has committed yet
    # Claims that no master answers for are released after so long; None: half the session timeout.
    fetch_patience_s: float | None = Field(default=None, gt=0)
    kill_grace_s: float = Field(default=5.0, ge=0)  # between TERM and KILL
    drain_s: float = Field(default=30.0, ge=0)  # running attempts may finish when we are stopped
    # The rest of a longer log is dropped, the task goes on; MiB, 0: no limit.
    log_limit_mb: int = Field(default=256, ge=0)
    # Logs go when their instance ended longer ago, and with it in any case; 0: with it alone.
    log_retention_days: float = Field(default=90.0, ge=0)
    # Of short tasks so many are claimed beyond the slots, which share the requests of a claim; 0:
    # tasks are claimed for free slots alone.
    prefetch: int = Field(default=64, ge=0, le=10_000)
    # Take the tasks behind one that has succeeded with the answer to its report, without the queue.
    eager_dispatch: bool = True
    # No further tasks while less is free on the disk of a folder above; MiB, 0: no limit. The
    # oldest logs go while less than twice this is free.
    min_free_mb: int = Field(default=200, ge=0)
    # Resources that tasks have used are kept here up to so many MiB.
    resource_cache_mb: int = Field(default=2048, ge=0)
    # Each attempt gets a control group where that is possible, see docs/worker-processes.md.
    cgroups: Literal["auto", "off"] = "auto"
    # Further variables of this process that tasks get: names, separated by commas or spaces.
    env_pass: Annotated[tuple[str, ...], NoDecode] = ()
    # Networks that HTTP tasks may reach although they are refused, such as 127.0.0.0/8, and further
    # ones that they may not: separated by commas or spaces. What is allowed goes before.
    http_allow: Annotated[str, AfterValidator(_networks)] = ""
    http_deny: Annotated[str, AfterValidator(_networks)] = ""
    # Proxy of HTTP tasks, http://user:password@host:port; variables of the environment do not
    # count. Hosts and .domains that are reached without it: separated by commas or spaces.
    http_proxy: Annotated[str, AfterValidator(_proxy)] = Field(default="", repr=False)
    http_no_proxy: Annotated[str, AfterValidator(_words)] = ""

    # Folders that WAIT_FILE tasks may look at (none: all), and URLs of storages that they may look
    # at with this worker's credentials (none: none), such as /data s3://bucket/in: separated by
    # commas or spaces.
    wait_roots: Annotated[str, AfterValidator(_roots)] = ""

    # Engines of CONTAINER tasks, as unix:///run/docker.sock; empty: there is none. Who may use such
    # a socket may do anything on its machine, so a task reaches it by the worker alone.
    docker_socket: Annotated[str, AfterValidator(_socket)] = ""
    podman_socket: Annotated[str, AfterValidator(_socket)] = ""
    # Networks that a container may have, the first is the usual one. Folders of this machine that
    # it may mount, FOLDER or FOLDER:rw. Separated by commas or spaces.
    container_networks: Annotated[str, AfterValidator(_container_networks)] = "none"
    container_mounts: Annotated[str, AfterValidator(_container_mounts)] = ""
    # A file with clusters and how to sign in there (kubeconfig), or in-cluster: where this worker
    # is a pod itself; empty: no Kubernetes. Of the file this context; empty: its current one.
    kubernetes_config: str = ""
    kubernetes_context: str = ""
    # Namespaces that a task may use, the first is the usual one, and service accounts that it may
    # name there: separated by commas or spaces.
    kubernetes_namespaces: Annotated[str, AfterValidator(_words)] = ""
    kubernetes_service_accounts: Annotated[str, AfterValidator(_words)] = ""

    # Spark Connect servers that this worker keeps, one for each project that asks for it; 0: none.
    # Each has a heap of so many MiB, runs what it is asked for on this cluster, and is ended when
    # it was unused for so long.
    spark_servers: int = Field(default=2, ge=0, le=100)
    spark_memory_mb: int = Field(default=1024, ge=500)
    spark_master: str = Field(default="local[*]", pattern=r"^(local|spark://|yarn|k8s://)\S*$")
    spark_idle_s: float = Field(default=600.0, ge=0)
    # Whether the worker makes an archive of Spark's classes when a task would have used it.
    spark_class_archive: bool = True

    def for_task_types(self) -> dict[str, str]:
        """Return what task types get of these settings; see TaskContext."""
        return {
            "http_allow": self.http_allow,
            "http_deny": self.http_deny,
            "http_proxy": self.http_proxy,
            "http_no_proxy": self.http_no_proxy,
            "wait_roots": self.wait_roots,
            "docker_socket": self.docker_socket,
            "podman_socket": self.podman_socket,
            "container_networks": self.container_networks,
            "container_mounts": self.container_mounts,
            "kubernetes_config": self.kubernetes_config,
            "kubernetes_context": self.kubernetes_context,
            "kubernetes_namespaces": self.kubernetes_namespaces,
            "kubernetes_service_accounts": self.kubernetes_service_accounts,
            "kill_grace_s": str(self.kill_grace_s),
        }

    @field_validator("env_pass", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return re.split(r"[,\s]+", value.strip(", \t\n")) if isinstance(value, str) else value

    @field_validator("env_pass")
    @classmethod
    def _no_secrets(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name.upper().startswith("SHOAL_"):
                raise ValueError(f"{name} is Shoal's own and never handed to tasks")
        return tuple(name for name in names if name)

    @field_validator("work_dir", "log_dir", "spool_dir")
    @classmethod
    def _expanded(cls, path: Path | None) -> Path | None:
        return None if path is None else path.expanduser().absolute()

    @model_validator(mode="after")
    def _folders_apart(self) -> Self:
        given = [path for path in (self.work_dir, self.log_dir, self.spool_dir) if path]
        if len(set(given)) != len(given):
            raise ValueError("work_dir, log_dir and spool_dir must be different folders")
        return self
